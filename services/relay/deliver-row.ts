/** What becomes of one outbox row. */
import type { NatsConnection } from "nats";
import { RefusedError } from "../bus/refusals.ts";
import { askStation } from "../bus/station-client.ts";
import { CREDENTIALS, ROBOTICS_EVENTS, SESSIONS, type StationLogs, SWITCHES } from "../bus/streams.ts";
import { type BucketDeps, deleteEntry, putOnce } from "./buckets.ts";
import { RELAY_LIMITS } from "./limits.ts";
import { publishRoboticsEvent } from "./robotics-event.ts";
import type { PendingRow } from "./sql/outbox-rows.ts";
import { setSwitch } from "./switch-bucket.ts";

/** Where a row was stored, or why its receiver refuses it, which repeating would not change. */
export type Delivery =
  | { readonly stream: string; readonly sequence: number; readonly failedReason: null }
  | { readonly stream: null; readonly sequence: null; readonly failedReason: string };

export interface DeliverDeps extends BucketDeps {
  readonly nc: NatsConnection;
  readonly logs: StationLogs;
}

const stored = (stream: string, sequence: number): Delivery => ({ stream, sequence, failedReason: null });

/**
 * Delivers a row. Safe to repeat: a station's command carries the row's id as its command id, entries of buckets are put
 * once, and a kill switch takes a higher revision only. Throws when it is not known to be delivered; then it must be tried again.
 */
export async function deliverRow(deps: DeliverDeps, row: PendingRow): Promise<Delivery> {
  switch (row.kind) {
    case "station_command": {
      const { stationId, actor, command } = row;
      const request = { commandId: `outbox:${row.outboxId}`, actor, command };
      const answer = await askStation(deps.nc, stationId, request, { timeoutMs: RELAY_LIMITS.stationTimeoutMs }).catch(
        notUnderstood,
      );
      if (answer === "not understood") return { stream: null, sequence: null, failedReason: "invalid_request" };
      if (answer.reply.ok) return stored(deps.logs.of(stationId).name, answer.sequence);
      return { stream: null, sequence: null, failedReason: answer.reply.code };
    }
    case "credential_put":
      return stored(`KV_${CREDENTIALS.name}`, await putOnce(deps, CREDENTIALS, row.hash, row.entry));
    case "credential_delete":
      return stored(`KV_${CREDENTIALS.name}`, await deleteEntry(deps, CREDENTIALS, row.hash));
    case "session_put":
      return stored(`KV_${SESSIONS.name}`, await putOnce(deps, SESSIONS, row.hash, row.entry));
    case "session_delete":
      return stored(`KV_${SESSIONS.name}`, await deleteEntry(deps, SESSIONS, row.hash));
    case "switch_set":
      return stored(`KV_${SWITCHES.name}`, (await setSwitch(deps, row.entry)).sequence);
    case "robotics_event":
      return stored(ROBOTICS_EVENTS.name, await publishRoboticsEvent(deps, row));
  }
}

/** A command that a host does not understand stays so, and must not keep the rows behind it; anything else is retried. */
function notUnderstood(error: unknown): "not understood" {
  if (error instanceof RefusedError && error.refusal.code === "invalid_request") return "not understood";
  throw error;
}
