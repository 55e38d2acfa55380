/** What the registry publishes about the end of sessions, and the wait for the delivery of outbox rows. */
import type { Actor } from "../../machines/actor.ts";
import { flushKeys } from "../bus/flush-outbox.ts";
import type { Barrier, Caller } from "../bus/messages/caller.ts";
import { insertOutboxRows, type OutboxKey, type OutboxRow, sessionKey, stationKey } from "../db/outbox.ts";
import type { Transaction } from "../db/pool.ts";
import type { RegistryDeps } from "./deps.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import { type EndedSession, unbindStations } from "./sql/sessions.ts";

interface SessionEnd {
  readonly userId: number;
  readonly ended: readonly EndedSession[];
  /** Who ended them: the person, or the owner. */
  readonly by: Pick<Caller, "userId" | "name" | "role">;
  /** Rows that have to be written with them. */
  readonly more?: readonly OutboxRow[];
}

/**
 * Writes the outbox rows of ended sessions, so that each gateway and each station that a session drives receives the end,
 * whatever crashes. Returns the keys that wait for delivery. Comes last in a transaction, as every outbox row.
 */
export async function announceSessionEnds(
  tx: Transaction,
  { userId, ended, by, more = [] }: SessionEnd,
): Promise<OutboxKey[]> {
  const sessionIds = ended.map(({ session_id }) => session_id);
  const bound = ended.length === 0 ? [] : await unbindStations(tx, sessionIds);
  const rows: OutboxRow[] = [
    ...sessionDeletes(userId, ended),
    ...bound.map(({ station_id: stationId, session_ids }) => ({
      key: stationKey(stationId),
      kind: "station_command" as const,
      stationId,
      actor: stationActor(by),
      command: { type: "sessions_ended" as const, sessionIds: session_ids },
    })),
    ...more,
  ];
  await insertOutboxRows(tx, rows);
  return [...new Set(rows.map(({ key }) => key))];
}

/** Takes ended sessions out of the gateways. */
export function sessionDeletes(userId: number, ended: readonly EndedSession[]): OutboxRow[] {
  return ended.map(({ hash }) => ({ key: sessionKey(userId), kind: "session_delete", hash }));
}

/** The person as a station's log names them. */
function stationActor({ userId, name, role }: SessionEnd["by"]): Actor {
  switch (role) {
    case "owner":
      return { kind: "owner", id: userId, name };
    case "cashier":
      return { kind: "cashier", id: userId, name };
    case "reconciliation_operator":
      return { kind: "registry", id: 0 };
  }
}

/** Has the relay deliver these keys now, and says how far the replicas must come to show it (`services/bus/flush-outbox.ts`). */
export async function flush(
  { nc, log }: Pick<RegistryDeps, "nc" | "log">,
  ...keys: readonly OutboxKey[]
): Promise<Barrier> {
  return await flushKeys({ nc, log, timeoutMs: REGISTRY_LIMITS.flushTimeoutMs }, keys);
}
