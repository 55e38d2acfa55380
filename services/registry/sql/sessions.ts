import type { StationKey } from "../../db/outbox.ts";
import type { ExpiredRows, Queryable, Transaction } from "../../db/pool.ts";
import type { UserRow } from "./users.ts";

export interface SessionRow {
  readonly session_id: number;
  readonly expires_at: Date;
}

/** A session that ended before it expired; `hash` is the hash of its token, in hex. */
export interface EndedSession {
  readonly session_id: number;
  readonly hash: string;
}

/** One session of one person. */
interface OneSession {
  readonly organizationId: number;
  readonly userId: number;
  readonly sessionId: number;
}

export async function createSession(
  sql: Transaction,
  session: Omit<OneSession, "sessionId"> & { readonly hash: Buffer; readonly lifetimeMs: number },
): Promise<SessionRow> {
  const [row] = await sql<[SessionRow]>`
    insert into sessions (organization_id, user_id, token_hash, expires_at)
    values (${session.organizationId}, ${session.userId}, ${session.hash},
      now() + ${session.lifetimeMs}::float8 * interval '1 millisecond')
    returning session_id, expires_at`;
  return row;
}

/** Ends one session of the user. Returns undefined when it has ended or expired, or belongs to another person. */
export async function endSession(sql: Transaction, session: OneSession): Promise<EndedSession | undefined> {
  const [row] = await sql<EndedSession[]>`
    update sessions set ended_at = now()
    where session_id = ${session.sessionId} and user_id = ${session.userId}
      and organization_id = ${session.organizationId} and ended_at is null and expires_at > now()
    returning session_id, encode(token_hash, 'hex') as hash`;
  return row;
}

/** Ends all but the newest `keep` sessions of the user. Returns the ended sessions that had not expired. */
export async function endOlderSessions(sql: Transaction, userId: number, keep: number): Promise<EndedSession[]> {
  const rows = await sql<(EndedSession & { expired: boolean })[]>`
    update sessions set ended_at = now()
    where session_id in (
      select session_id from sessions where user_id = ${userId} and ended_at is null
      order by session_id desc offset ${keep})
    returning session_id, encode(token_hash, 'hex') as hash, expires_at <= now() as expired`;
  return rows.filter((row) => !row.expired);
}

/** Ends all sessions of the user, except `exceptId`. Returns the ended sessions that had not expired. */
export async function endSessions(sql: Transaction, userId: number, exceptId?: number): Promise<EndedSession[]> {
  const others = exceptId === undefined ? sql`` : sql`and session_id <> ${exceptId}`;
  const rows = await sql<(EndedSession & { expired: boolean })[]>`
    update sessions set ended_at = now() where user_id = ${userId} and ended_at is null ${others}
    returning session_id, encode(token_hash, 'hex') as hash, expires_at <= now() as expired`;
  return rows.filter((row) => !row.expired);
}

/** Deletes up to `rows` sessions that expired more than `olderThanDays` ago. Returns how many it deleted. */
export async function deleteOldSessions(sql: Queryable, { olderThanDays, rows }: ExpiredRows): Promise<number> {
  const result = await sql`
    delete from sessions where session_id in (
      select session_id from sessions
      where expires_at < now() - ${olderThanDays}::float8 * interval '1 day' limit ${rows})`;
  return result.count;
}

interface AnnouncedSessionRow extends SessionRow, Pick<UserRow, "user_id" | "organization_id" | "name" | "role"> {
  readonly hash: string;
  readonly is_open: boolean;
}

/** The unexpired sessions of all organizations with an id above `sinceId`, in the order of their ids. */
export async function announceSessions(
  sql: Queryable,
  { sinceId, limit }: { readonly sinceId: number; readonly limit: number },
): Promise<AnnouncedSessionRow[]> {
  return sql<AnnouncedSessionRow[]>`
    select s.session_id, encode(s.token_hash, 'hex') as hash, s.expires_at, s.ended_at is null as is_open,
           u.user_id, u.organization_id, u.name, u.role
    from sessions s join users u using (user_id)
    where s.session_id > ${sinceId} and s.expires_at > now() order by s.session_id limit ${limit}`;
}

/** Keeps the session open until the transaction ends. Returns false when it has ended or expired, or is not the person's. */
export async function holdSessionOpen(sql: Transaction, session: OneSession): Promise<boolean> {
  const rows = await sql`
    select from sessions
    where session_id = ${session.sessionId} and user_id = ${session.userId}
      and organization_id = ${session.organizationId} and ended_at is null and expires_at > now()
    for share`;
  return rows.length > 0;
}

/** Binds a station to the session. A second call changes nothing. */
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

/** Removes the bindings of these sessions. Returns each station with its sessions among them. */
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

/**
 * The keys of the stations to which the relay still has to deliver the end of a session of the user, or has delivered it in
 * the last `withinMs`. With `sessionId`, only the end of that session counts.
 */
export async function listSessionEndKeys(
  sql: Transaction,
  {
    userId,
    sessionId,
    withinMs,
  }: { readonly userId: number; readonly sessionId: number | undefined; readonly withinMs: number },
): Promise<StationKey[]> {
  const one = sessionId === undefined ? sql`` : sql`and session_id = ${sessionId}`;
  const rows = await sql<{ key: StationKey }[]>`
    with recent as (
      select key, kind, payload -> 'command' as command from outbox where delivered_at is null
      union all
      select key, kind, payload -> 'command' from outbox
      where delivered_at > now() - ${withinMs}::float8 * interval '1 millisecond')
    select distinct key from recent
    where kind = 'station_command' and command ->> 'type' = 'sessions_ended' and exists (
      select from jsonb_array_elements_text(command -> 'sessionIds') as id
      join sessions on session_id = id::bigint where user_id = ${userId} ${one})`;
  return rows.map(({ key }) => key);
}

/** Stores a login from this address. Deletes all but the newest `keep` addresses. The caller has locked the user's row. */
export async function rememberAddress(
  sql: Transaction,
  { userId, addressHash }: { readonly userId: number; readonly addressHash: Buffer },
  keep: number,
): Promise<void> {
  await sql`
    insert into known_addresses (user_id, address_hash) values (${userId}, ${addressHash})
    on conflict (user_id, address_hash) do update set last_login_at = now()`;
  await sql`
    delete from known_addresses
    where user_id = ${userId} and address_hash in (
      select address_hash from known_addresses where user_id = ${userId}
      order by last_login_at desc, address_hash offset ${keep})`;
}

/** Deletes up to `rows` addresses without a login in the last `olderThanDays`. Returns how many it deleted. */
export async function deleteOldKnownAddresses(sql: Queryable, { olderThanDays, rows }: ExpiredRows): Promise<number> {
  const result = await sql`
    delete from known_addresses where (user_id, address_hash) in (
      select user_id, address_hash from known_addresses
      where last_login_at <= now() - ${olderThanDays}::float8 * interval '1 day' limit ${rows} for update skip locked)`;
  return result.count;
}

/** Stores a login from this browser. Deletes all but the newest `keep` browsers. The caller has locked the user's row. */
export async function rememberBrowser(
  sql: Transaction,
  { userId, browserHash }: { readonly userId: number; readonly browserHash: Buffer },
  keep: number,
): Promise<void> {
  await sql`
    insert into known_browsers (user_id, token_hash) values (${userId}, ${browserHash})
    on conflict (user_id, token_hash) do update set last_login_at = now()`;
  await sql`
    delete from known_browsers
    where user_id = ${userId} and token_hash in (
      select token_hash from known_browsers where user_id = ${userId}
      order by last_login_at desc, token_hash offset ${keep})`;
}

export async function forgetBrowser(sql: Queryable, userId: number, browserHash: Buffer): Promise<void> {
  await sql`delete from known_browsers where user_id = ${userId} and token_hash = ${browserHash}`;
}

/** Deletes up to `rows` browsers without a login in the last `olderThanDays`. Returns how many it deleted. */
export async function deleteOldKnownBrowsers(sql: Queryable, { olderThanDays, rows }: ExpiredRows): Promise<number> {
  const result = await sql`
    delete from known_browsers where (user_id, token_hash) in (
      select user_id, token_hash from known_browsers
      where last_login_at <= now() - ${olderThanDays}::float8 * interval '1 day' limit ${rows} for update skip locked)`;
  return result.count;
}

/** Deletes up to `rows` login counters whose window has ended. Returns how many it deleted. */
export async function deleteOldLoginAttempts(sql: Queryable, rows: number): Promise<number> {
  const result = await sql`
    delete from login_attempts where key in (
      select key from login_attempts where expire < extract(epoch from now()) * 1000
      limit ${rows} for update skip locked)`;
  return result.count;
}
