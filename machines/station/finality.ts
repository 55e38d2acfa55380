/**
 * Which answers are true only of the newest state. A host may have read an older one, so before such an answer it confirms that
 * its state is the newest (M59).
 *
 *   with a commit ──► the commit proves it      a repeated answer ──► stays true      without a commit ──► the tables below
 */
import type { StationCommandType } from "./command.ts";
import type { RefusalCode, StationReply } from "./reply.ts";

/** Whether a client treats the refusal as final. After another refusal, a client repeats its command. */
export const IS_FINAL: Readonly<Record<RefusalCode, boolean>> = {
  station_unknown: true,
  device_unknown: true,
  device_limit_reached: true,
  station_leased: true,
  lease_required: true,
  session_ended: true,
  route_not_offered: true,
  collection_active: true,
  money_may_have_moved: true,
  amount_not_collectable: true,
  handoff_not_assigned: true,
  intent_unknown: true,
  intent_not_actionable: true,
  evidence_required: true,
  reference_required: true,
  settlement_in_progress: false,
  idempotency_key_reused: true,
  order_changed: true,
  order_already_paid: true,
  order_voided: true,
  order_unknown: true,
  money_already_used: true,
  reference_already_used: true,
  device_suspended: true,
  device_frozen: true,
  station_suspended: true,
  station_closed: true,
  station_frozen: true,
  organization_frozen: true,
  platform_frozen: true,
};

/**
 * Whether "there is nothing to do" may be wrong for a newer state. For the other commands the answer is also true of every
 * later state (the station knows the revision or the session's end, or the intent has changed), or the host asks again.
 */
const NOTHING_TO_DO_IS_FINAL: Readonly<Record<StationCommandType, boolean>> = {
  station_put: false,
  device_put: false,
  order_put: false,
  provider_put: false,
  sessions_ended: false,
  device_seen: false,
  device_silent: false,
  tick: false,
  lease_renew: false,
  // The answer shows the lease. In the newest state, the station may be free, or another cashier may hold the lease.
  lease_acquire: true,
  lease_release: true,
  lease_break: true,
  intent_create: false,
  intent_attest: false,
  intent_cancel: false,
  intent_report: false,
  // A device presents the intent of this answer, but the intent may have ended.
  intent_present: true,
  provider_confirm: false,
  provider_failed: false,
  // The intent may have got or lost this reason since.
  provider_cleared: true,
  provider_money_differs: true,
  // A collection of the order may have begun.
  order_inquire: true,
  // The state may be from before the intent, its attestation, or its end.
  settlement_succeeded: true,
  settlement_refused: true,
  end_reported: true,
  qr_ready: false,
  rule_out: false,
};

/** Refusals of which a kill switch may be the reason. */
const OF_SWITCHES: ReadonlySet<RefusalCode> = new Set([
  "route_not_offered",
  "device_frozen",
  "station_frozen",
  "organization_frozen",
  "platform_frozen",
]);

/** Whether the host must also confirm that its kill switches are the newest: the switch may be off since. */
export function needsNewestSwitches(reply: StationReply): boolean {
  return !reply.ok && OF_SWITCHES.has(reply.code);
}

/** All types of commands: the compiler makes sure that the table above has each. */
export const STATION_COMMAND_TYPES = Object.keys(NOTHING_TO_DO_IS_FINAL) as readonly StationCommandType[];

/** Whether the host must confirm that its state is the newest before it gives this answer without a commit. */
export function needsNewestState(command: { readonly type: StationCommandType }, reply: StationReply): boolean {
  return reply.ok ? NOTHING_TO_DO_IS_FINAL[command.type] : IS_FINAL[reply.code];
}
