/** What follows from the end of a person's sessions: the gateways forget them, and the stations that they drive are freed. */
import type { Actor } from "../../machines/actor.ts";
import type { Caller } from "../bus/messages/caller.ts";
import { insertOutboxRows, type OutboxKey, type OutboxRow } from "../db/outbox.ts";
import type { Transaction } from "../db/pool.ts";
import { sessionDeletes, sessionsEnded } from "./announce.ts";
import { unbindStations } from "./sql/session-stations.ts";
import type { EndedSession } from "./sql/sessions.ts";

interface SessionEnd {
  readonly userId: number;
  readonly ended: readonly EndedSession[];
  /** Who ended them: the person, or the owner. */
  readonly by: Pick<Caller, "userId" | "name" | "role">;
  /** Rows that have to be written with them. */
  readonly more?: readonly OutboxRow[];
}

/**
 * Writes the outbox rows of ended sessions, so that each gateway and each station receives the end, whatever crashes.
 * Returns the keys that wait for delivery. Comes last in a transaction, as every outbox row.
 */
export async function announceSessionEnds(
  tx: Transaction,
  { userId, ended, by, more = [] }: SessionEnd,
): Promise<OutboxKey[]> {
  const bound =
    ended.length === 0
      ? []
      : await unbindStations(
          tx,
          ended.map(({ session_id }) => session_id),
        );
  const rows = [
    ...sessionDeletes(userId, ended),
    ...bound.map((station) => sessionsEnded(station.station_id, station.session_ids, stationActor(by))),
    ...more,
  ];
  await insertOutboxRows(tx, rows);
  return [...new Set(rows.map(({ key }) => key))];
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
