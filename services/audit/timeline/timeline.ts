/** One payment, explained step by step: what happened, who did it, and whether money moved. */
import { wireStatus } from "../../../machines/payment-intent.ts";
import { requirePermission } from "../../bus/messages/caller.ts";
import type * as messages from "../../bus/messages/timelines.ts";
import type { RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { findCopiedIntent } from "../../db/intent-history.ts";
import { waitUntilCopied } from "../copy/progress.ts";
import type { AuditDeps } from "../deps.ts";
import { AUDIT_LIMITS } from "../limits.ts";
import { findAttribution } from "../sql/timeline.ts";
import { gatherFacts, type TimelineFacts } from "./facts.ts";
import { attributionEntry, attributionTimeline, closedIssueEntry, type Entry, switchEntry } from "./other-entries.ts";
import { actorName, describeStep } from "./sentences.ts";
import { overallMoneyMoved, summarize } from "./summary.ts";

/** Refuses with `permission_denied`, or with `not_found` for an intent that is not the organization's. */
export async function getIntentTimeline(
  deps: AuditDeps,
  { caller, intentId }: RequestOf<typeof messages.getIntentTimeline>,
): Promise<messages.Timeline> {
  const { organizationId } = requirePermission(
    caller,
    "organization.manage",
    "reconciliation.manage",
    "payments.collect",
  );
  const key = { organizationId, intentId };
  // An intent that is not copied yet may belong to any station. For a copied intent, its station is enough.
  const before = await findCopiedIntent(deps.database, key);
  const isComplete = await waitUntilCopied(deps, before?.stationId);
  const known = await findCopiedIntent(deps.database, key);
  if (known !== undefined) return render(await gatherFacts(deps, organizationId, { ...known, isComplete }));
  // An operator's attribution has a separate intent id, which no station knows.
  const attribution = await findAttribution(deps.database, key);
  if (attribution !== undefined) return attributionTimeline(attribution);
  if (isComplete) throw new RefusedError({ code: "not_found" });
  throw new RefusedError({ code: "unavailable", retryAfterMs: AUDIT_LIMITS.catchUpMs });
}

function render(facts: TimelineFacts): messages.Timeline {
  const { intent, stationId, events, settlement } = facts;
  const steps: Entry[] = events.map((event) => ({
    atMs: event.atMs,
    type: event.type,
    actor: { ...event.actor, name: actorName(event.actor) },
    ...describeStep(event, facts),
    data: event.type === "intent_succeeded" ? { ...event.data, ...settlement } : event.data,
  }));
  const moneyMoved = overallMoneyMoved(facts, steps);
  const others = [
    ...facts.switches.map((change) => switchEntry(change, facts)),
    ...facts.attributions.map(attributionEntry),
    ...facts.issues.closed.map(closedIssueEntry),
  ];
  return {
    intentId: intent.intentId,
    stationId,
    status: wireStatus(intent.status),
    summary: summarize(facts, moneyMoved),
    moneyMoved,
    entries: firstAndNewest(inOrderOfTime(steps, others)),
  };
}

/**
 * Puts the other entries between the steps. The creation is always the first entry: an earlier freeze follows it, with its
 * earlier time. The steps keep the order of their commits.
 */
function inOrderOfTime([creation, ...steps]: readonly Entry[], others: readonly Entry[]): Entry[] {
  if (creation === undefined) return [...others];
  const left = others.toSorted((a, b) => a.atMs - b.atMs);
  const merged = steps.flatMap((step) => {
    const next = left.findIndex((entry) => entry.atMs > step.atMs);
    return [...left.splice(0, next < 0 ? left.length : next), step];
  });
  return [creation, ...merged, ...left];
}

/** The creation, and as many of the newest entries as one message can carry with it. */
function firstAndNewest([first, ...later]: readonly Entry[]): Entry[] {
  if (first === undefined) return [];
  const [, ...newest] = firstPage([first, ...later.toReversed()], later.length + 1).page;
  return [first, ...newest.toReversed()];
}
