import type { Transaction } from "../../db/pool.ts";

/** Holds the session open until the transaction ends; false when it is over, or is somebody else's. */
export async function holdSessionOpen(
  sql: Transaction,
  session: { readonly organizationId: number; readonly userId: number; readonly sessionId: number },
): Promise<boolean> {
  const rows = await sql`
    select from sessions
    where session_id = ${session.sessionId} and user_id = ${session.userId}
      and organization_id = ${session.organizationId} and ended_at is null and expires_at > now()
    for share`;
  return rows.length > 0;
}

/** Binds a station to the session; repeated, it changes nothing. */
export async function bindStation(
  sql: Transaction,
  binding: { readonly sessionId: number; readonly stationId: number },
): Promise<void> {
  await sql`
    insert into session_stations (session_id, station_id) values (${binding.sessionId}, ${binding.stationId})
    on conflict do nothing`;
}

export async function countBoundStations(sql: Transaction, sessionId: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*) as count from session_stations where session_id = ${sessionId}`;
  return row.count;
}

/** Removes the bindings of these sessions; returns each station with those of the sessions that were bound to it. */
export async function unbindStations(
  sql: Transaction,
  sessionIds: readonly number[],
): Promise<{ readonly station_id: number; readonly session_ids: number[] }[]> {
  return sql<{ station_id: number; session_ids: number[] }[]>`
    with unbound as (
      delete from session_stations where session_id = any(${[...sessionIds]}::bigint[])
      returning station_id, session_id)
    select station_id, array_agg(session_id order by session_id) as session_ids from unbound
    group by station_id order by station_id`;
}
