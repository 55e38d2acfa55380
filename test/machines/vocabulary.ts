/** Every word of the machines as a list; the compiler asks for each one. */
import type { StationCommandType } from "../../machines/station/command.ts";
import type { StationEventType } from "../../machines/station/event.ts";

const EVENTS: Record<StationEventType, true> = {
  station_changed: true,
  device_changed: true,
  order_shown: true,
  order_cleared: true,
  device_online: true,
  device_offline: true,
  lease_acquired: true,
  lease_renewed: true,
  lease_released: true,
  lease_lapsed: true,
  intent_created: true,
  intent_presented: true,
  outcome_reported: true,
  late_evidence_kept: true,
  settlement_started: true,
  settlement_refused: true,
  intent_succeeded: true,
  settlement_conflict: true,
  intent_cancelled: true,
  intent_expired: true,
  provider_changed: true,
  qr_presented: true,
  provider_failed: true,
  provider_confirmed: true,
  late_money_kept: true,
  doubt_cleared: true,
  second_collection_confirmed: true,
};
export const STATION_EVENT_TYPES = Object.keys(EVENTS) as readonly StationEventType[];

const COMMANDS: Record<StationCommandType, true> = {
  station_put: true,
  device_put: true,
  order_put: true,
  device_seen: true,
  device_silent: true,
  lease_acquire: true,
  lease_renew: true,
  lease_release: true,
  intent_create: true,
  intent_attest: true,
  intent_cancel: true,
  intent_present: true,
  intent_report: true,
  settlement_succeeded: true,
  settlement_refused: true,
  provider_put: true,
  provider_confirm: true,
  provider_failed: true,
  provider_cleared: true,
  qr_ready: true,
  tick: true,
};
export const STATION_COMMAND_TYPES = Object.keys(COMMANDS) as readonly StationCommandType[];
