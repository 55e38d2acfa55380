/** The facts from which a timeline is made. */
import type { PaymentIntent } from "../../../machines/payment-intent.ts";
import type { AuditEvent } from "../../bus/messages/events.ts";
import type { AuditDeps } from "../deps.ts";
import { AUDIT_LIMITS } from "../limits.ts";
import { selectIntentEvents } from "../sql/events.ts";
import {
  type Attribution,
  findSettlement,
  type OwnReferences,
  type PaymentIssues,
  type Settlement,
  type SwitchChange,
  selectAttributions,
  selectDeviceNames,
  selectOwnReferences,
  selectPaymentIssues,
  selectSwitchChanges,
} from "../sql/timeline.ts";

/** An intent in the audit copy. */
interface KnownIntent {
  readonly intent: PaymentIntent;
  readonly stationId: number;
  /** False when the audit copy did not get the newest commits in time. */
  readonly isComplete: boolean;
}

export interface TimelineFacts extends KnownIntent {
  /** Oldest first. */
  readonly events: readonly AuditEvent[];
  /** The transaction that the payment seam recorded; undefined when it recorded none. */
  readonly settlement: Settlement | undefined;
  /** The names that the devices had when the payment began. */
  readonly deviceNames: ReadonlyMap<number, string>;
  /** Kill switches that were on or changed while the payment was under way, oldest first. */
  readonly switches: readonly SwitchChange[];
  /** Provider payments for this intent that an operator attributed to an order, oldest first. */
  readonly attributions: readonly Attribution[];
  /** The decisions of people about provider payments that did not fit. */
  readonly issues: PaymentIssues;
  readonly ownReferences: OwnReferences;
}

export async function gatherFacts(
  { database }: AuditDeps,
  organizationId: number,
  known: KnownIntent,
): Promise<TimelineFacts> {
  const { timelineSteps, timelineSwitches, timelineAttributions, timelineClosedIssues } = AUDIT_LIMITS;
  const { intentId, orderId, deviceId, provider, createdAtMs, endedAtMs } = known.intent;
  const key = { organizationId, intentId };
  const place = { organizationId, stationId: known.stationId };
  const span = { deviceId, configId: provider?.configId ?? null, fromMs: createdAtMs, toMs: endedAtMs };
  const [events, settlement, switches, attributions, issues, ownReferences] = await Promise.all([
    selectIntentEvents(database, { ...place, intentId, orderId, limit: timelineSteps }),
    findSettlement(database, key),
    selectSwitchChanges(database, { ...place, ...span, limit: timelineSwitches }),
    selectAttributions(database, { ...key, limit: timelineAttributions }),
    selectPaymentIssues(database, { ...key, limit: timelineClosedIssues }),
    selectOwnReferences(database, key),
  ]);
  const deviceIds = [deviceId, ...events.map(({ data }) => data["deviceId"])].filter((id) => typeof id === "number");
  const registered = await selectDeviceNames(database, {
    organizationId,
    deviceIds: [...new Set(deviceIds)],
    atMs: createdAtMs,
  });
  // The device's events have the name that it had when it acted, so this name takes precedence.
  const deviceNames = new Map([...registered, ...events.toReversed().flatMap(nameOfActor)]);
  return { ...known, events, settlement, deviceNames, switches, attributions, issues, ownReferences };
}

function nameOfActor({ actor }: AuditEvent): [number, string][] {
  return actor.kind === "device" && actor.name !== "" ? [[actor.id, actor.name]] : [];
}
