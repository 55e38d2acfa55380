/** One payment, told in order: what happened, who did it, and whether money moved. */

import { wireStatus } from "../../../machines/payment-intent.ts";
import { requirePermission } from "../../bus/messages/caller.ts";
import type { AuditEvent } from "../../bus/messages/events.ts";
import type { getIntentTimeline } from "../../bus/messages/timelines.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { findCopiedIntent } from "../../db/intent-history.ts";
import { waitUntilCopied } from "../catch-up.ts";
import type { AuditDeps } from "../deps.ts";
import { AUDIT_LIMITS } from "../limits.ts";
import { findAttribution, selectAttributedMoney } from "../sql/read-attribution.ts";
import { selectIssuesOfPayment, selectReferencesSaid } from "../sql/read-closed-issues.ts";
import { findSettlement, selectDeviceNames, selectIntentEvents } from "../sql/read-events.ts";
import { selectSwitchesThrown } from "../sql/read-switches.ts";
import { tellAttributedMoney, tellClosedIssue, tellSwitch } from "./aside.ts";
import { tellAttribution } from "./attribution.ts";
import { actorName, type TimelineFacts } from "./facts.ts";
import { tell } from "./sentences.ts";
import { overallMoneyMoved, summarize } from "./summary.ts";

type Request = RequestOf<typeof getIntentTimeline>;
type Reply = ReplyOf<typeof getIntentTimeline>;
type Entry = Reply["entries"][number];

/** Refuses with `permission_denied`, or with `not_found` for an intent that is not the organization's. */
export async function timeline(deps: AuditDeps, request: Request): Promise<Reply> {
  requirePermission(request.caller, "organization.manage", "reconciliation.manage", "payments.collect");
  const { intentId } = request;
  const key = { organizationId: request.caller.organizationId, intentId };
  // An intent that the copy does not know yet could be any station's; one that it knows waits for its own station only.
  const before = await findCopiedIntent(deps.database, key);
  const isComplete = await waitUntilCopied(deps, before?.stationId);
  const known = await findCopiedIntent(deps.database, key);
  // An operator's attribution has an intent id of its own, which no station knows.
  const attribution = known === undefined ? await findAttribution(deps.database, key) : undefined;
  if (attribution !== undefined) return tellAttribution(intentId, attribution);
  if (known === undefined && isComplete) throw new RefusedError({ code: "not_found" });
  if (known === undefined) throw new RefusedError({ code: "unavailable", retryAfterMs: AUDIT_LIMITS.catchUpMs });
  const facts = await gatherFacts(deps, { ...key, ...known, isComplete });
  return render(known.stationId, facts);
}

async function gatherFacts(
  { database }: AuditDeps,
  known: Pick<TimelineFacts, "intent" | "isComplete"> & {
    readonly organizationId: number;
    readonly stationId: number;
    readonly intentId: number;
  },
): Promise<TimelineFacts> {
  const { organizationId, stationId, intentId, intent, isComplete } = known;
  const { timelineSteps, timelineSwitches, timelineAttributions, timelineClosedIssues } = AUDIT_LIMITS;
  const { orderId, deviceId, provider, createdAtMs, endedAtMs } = intent;
  const held = { deviceId, configId: provider?.configId ?? null, fromMs: createdAtMs, toMs: endedAtMs };
  const [events, settlement, switches, attributed, issues, referencesSaid] = await Promise.all([
    selectIntentEvents(database, { organizationId, stationId, intentId, orderId, limit: timelineSteps }),
    findSettlement(database, { organizationId, intentId }),
    selectSwitchesThrown(database, { organizationId, stationId, ...held, limit: timelineSwitches }),
    selectAttributedMoney(database, { organizationId, intentId, limit: timelineAttributions }),
    selectIssuesOfPayment(database, { organizationId, intentId, limit: timelineClosedIssues }),
    selectReferencesSaid(database, { organizationId, intentId }),
  ]);
  const deviceIds = [
    ...new Set([...events.flatMap((event) => deviceIdOf(event) ?? []), ...(deviceId === null ? [] : [deviceId])]),
  ];
  const registered = await selectDeviceNames(database, { organizationId, deviceIds, atMs: createdAtMs });
  // What a device was called when it acted stands in its own steps, and is as certain as they are.
  const deviceNames = new Map([...registered, ...events.toReversed().flatMap(nameOfActor)]);
  return { intent, events, settlement, deviceNames, switches, attributed, issues, referencesSaid, isComplete };
}

function deviceIdOf({ data }: AuditEvent): number | undefined {
  return typeof data["deviceId"] === "number" ? data["deviceId"] : undefined;
}

function nameOfActor({ actor }: AuditEvent): [number, string][] {
  return actor.kind === "device" && actor.name !== "" ? [[actor.id, actor.name]] : [];
}

function render(stationId: number, facts: TimelineFacts): Reply {
  const { intent, events, settlement } = facts;
  const steps = events.map((event) => ({ event, told: tell(event, facts) }));
  const moneyMoved = overallMoneyMoved(
    facts,
    steps.map((step) => step.told),
  );
  return {
    intentId: intent.intentId,
    stationId,
    status: wireStatus(intent.status),
    summary: summarize(facts, moneyMoved),
    moneyMoved,
    entries: firstAndNewest(
      inOrderOfTime(
        steps.map(({ event, told }) => ({
          atMs: event.atMs,
          type: event.type,
          actor: { ...event.actor, name: actorName(event.actor) },
          sentence: told.sentence,
          moneyMoved: told.moneyMoved,
          data: event.type === "intent_succeeded" ? { ...event.data, ...settlement } : event.data,
        })),
        [
          ...facts.switches.map((thrown) => tellSwitch(thrown, facts)),
          ...facts.attributed.map(tellAttributedMoney),
          ...facts.issues.closed.map(tellClosedIssue),
        ],
      ),
    ),
  };
}

/**
 * What happened beside the payment, put between its steps. The creation stays the first entry: a freeze that held already
 * follows it, with the time of its own. The steps keep the order of their commits.
 */
function inOrderOfTime([creation, ...steps]: readonly Entry[], beside: readonly Entry[]): Entry[] {
  if (creation === undefined) return [...beside];
  const left = beside.toSorted((a, b) => a.atMs - b.atMs);
  const merged = steps.flatMap((step) => {
    const next = left.findIndex((entry) => entry.atMs > step.atMs);
    return [...left.splice(0, next < 0 ? left.length : next), step];
  });
  return [creation, ...merged, ...left];
}

/** The creation, and as many of the newest steps as one message can carry beside it. */
function firstAndNewest(entries: readonly Reply["entries"][number][]): Reply["entries"] {
  const [first, ...later] = entries;
  if (first === undefined) return [];
  const [, ...newest] = firstPage([first, ...later.toReversed()], entries.length).page;
  return [first, ...newest.toReversed()];
}
