/** Outbox rows about sessions, and the wait for the delivery of outbox rows. */
import type { Actor } from "../../machines/actor.ts";
import { flushKeys } from "../bus/flush-outbox.ts";
import type { Barrier } from "../bus/messages/caller.ts";
import { type OutboxKey, type OutboxRow, sessionKey, stationKey } from "../db/outbox.ts";
import type { RegistryDeps } from "./deps.ts";
import { REGISTRY_LIMITS } from "./limits.ts";

/** Takes ended sessions out of the gateways. */
export function sessionDeletes(userId: number, ended: readonly { readonly hash: string }[]): OutboxRow[] {
  return ended.map(({ hash }) => ({ key: sessionKey(userId), kind: "session_delete", hash }));
}

/** Notifies a station of the end of sessions that may drive it. */
export function sessionsEnded(stationId: number, sessionIds: readonly number[], actor: Actor): OutboxRow {
  return {
    key: stationKey(stationId),
    kind: "station_command",
    stationId,
    actor,
    command: { type: "sessions_ended", sessionIds },
  };
}

/** Has the relay deliver these keys now, and says how far the replicas must come to show it (`services/bus/flush-outbox.ts`). */
export async function flush(
  { nc, log }: Pick<RegistryDeps, "nc" | "log">,
  ...keys: readonly OutboxKey[]
): Promise<Barrier> {
  return await flushKeys({ nc, log, timeoutMs: REGISTRY_LIMITS.flushTimeoutMs }, keys);
}
