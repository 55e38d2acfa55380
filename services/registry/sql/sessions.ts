import type { Queryable, Transaction } from "../../db/pool.ts";

export interface SessionRow {
  readonly session_id: number;
  readonly expires_at: Date;
}

/** A session that was ended before it expired; the hash is its token's, in hex. */
export interface EndedSession {
  readonly session_id: number;
  readonly hash: string;
}

export async function insertSession(
  sql: Transaction,
  session: {
    readonly organizationId: number;
    readonly userId: number;
    readonly hash: Buffer;
    readonly lifetimeMs: number;
  },
): Promise<SessionRow> {
  const [row] = await sql<[SessionRow]>`
    insert into sessions (organization_id, user_id, token_hash, expires_at)
    values (${session.organizationId}, ${session.userId}, ${session.hash},
      now() + ${session.lifetimeMs}::float8 * interval '1 millisecond')
    returning session_id, expires_at`;
  return row;
}

/** Ends one session of the user; undefined when it is over or another person's. */
export async function endSession(
  sql: Transaction,
  session: { readonly organizationId: number; readonly userId: number; readonly sessionId: number },
): Promise<EndedSession | undefined> {
  const [row] = await sql<EndedSession[]>`
    update sessions set ended_at = now()
    where session_id = ${session.sessionId} and user_id = ${session.userId}
      and organization_id = ${session.organizationId} and ended_at is null and expires_at > now()
    returning session_id, encode(token_hash, 'hex') as hash`;
  return row;
}

/** Ends the user's sessions but for the newest `keep`; returns those that had not expired. */
export async function endOlderSessions(sql: Transaction, userId: number, keep: number): Promise<EndedSession[]> {
  const rows = await sql<(EndedSession & { expired: boolean })[]>`
    update sessions set ended_at = now()
    where session_id in (
      select session_id from sessions where user_id = ${userId} and ended_at is null
      order by session_id desc offset ${keep})
    returning session_id, encode(token_hash, 'hex') as hash, expires_at <= now() as expired`;
  return rows.filter((row) => !row.expired);
}

/** Ends the user's sessions, all of them or all but one; returns those that had not expired. */
export async function endSessions(sql: Transaction, userId: number, exceptId?: number): Promise<EndedSession[]> {
  const others = exceptId === undefined ? sql`` : sql`and session_id <> ${exceptId}`;
  const rows = await sql<(EndedSession & { expired: boolean })[]>`
    update sessions set ended_at = now() where user_id = ${userId} and ended_at is null ${others}
    returning session_id, encode(token_hash, 'hex') as hash, expires_at <= now() as expired`;
  return rows.filter((row) => !row.expired);
}

/** Deletes up to `rows` sessions that expired so many days ago; returns how many. */
export async function deleteOldSessions(
  sql: Queryable,
  { olderThanDays, rows }: { readonly olderThanDays: number; readonly rows: number },
): Promise<number> {
  const result = await sql`
    delete from sessions where session_id in (
      select session_id from sessions
      where expires_at < now() - ${olderThanDays}::float8 * interval '1 day' limit ${rows})`;
  return result.count;
}
