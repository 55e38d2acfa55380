/** What becomes of one outbox row. */
import type { NatsConnection } from "nats";
import { RefusedError } from "../bus/refusals.ts";
import { askStation } from "../bus/station-client.ts";
import { CREDENTIALS, SESSIONS } from "../bus/streams.ts";
import { type BucketDeps, deleteEntry, putOnce } from "./buckets.ts";
import { RELAY_LIMITS } from "./limits.ts";
import { publishRoboticsEvent } from "./robotics-event.ts";
import type { PendingRow } from "./sql/outbox-rows.ts";
import { setSwitch } from "./switch-bucket.ts";

/** Where a row was stored, or why its receiver refuses it, which repeating would not change. */
export type Delivery =
  | { readonly sequence: number; readonly failedReason: null }
  | { readonly sequence: null; readonly failedReason: string };

export interface DeliverDeps extends BucketDeps {
  readonly nc: NatsConnection;
}

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
      if (answer === "not understood") return { sequence: null, failedReason: "invalid_request" };
      if (answer.reply.ok) return { sequence: answer.sequence, failedReason: null };
      return { sequence: null, failedReason: answer.reply.code };
    }
    case "credential_put":
      return { sequence: await putOnce(deps, CREDENTIALS, row.hash, row.entry), failedReason: null };
    case "credential_delete":
      return { sequence: await deleteEntry(deps, CREDENTIALS, row.hash), failedReason: null };
    case "session_put":
      return { sequence: await putOnce(deps, SESSIONS, row.hash, row.entry), failedReason: null };
    case "session_delete":
      return { sequence: await deleteEntry(deps, SESSIONS, row.hash), failedReason: null };
    case "switch_set":
      return { sequence: (await setSwitch(deps, row.entry)).sequence, failedReason: null };
    case "robotics_event":
      return { sequence: await publishRoboticsEvent(deps, row), failedReason: null };
  }
}

/** A command that a host does not understand stays so, and must not keep the rows behind it; anything else is retried. */
function notUnderstood(error: unknown): "not understood" {
  if (error instanceof RefusedError && error.refusal.code === "invalid_request") return "not understood";
  throw error;
}
