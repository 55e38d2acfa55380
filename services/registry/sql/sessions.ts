import type { Queryable, Transaction } from "../../db/pool.ts";

export interface SessionRow {
  readonly session_id: number;
  readonly expires_at: Date;
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

/** Ends one session of the user; returns its token's hash in hex, or undefined when it is over or somebody else's. */
export async function endSession(
  sql: Transaction,
  session: { readonly organizationId: number; readonly userId: number; readonly sessionId: number },
): Promise<string | undefined> {
  const [row] = await sql<{ hash: string }[]>`
    update sessions set ended_at = now()
    where session_id = ${session.sessionId} and user_id = ${session.userId}
      and organization_id = ${session.organizationId} and ended_at is null and expires_at > now()
    returning encode(token_hash, 'hex') as hash`;
  return row?.hash;
}

/** Ends the user's sessions but for the newest `keep`; returns the hashes, in hex, of those that had not expired. */
export async function endOlderSessions(sql: Transaction, userId: number, keep: number): Promise<string[]> {
  const rows = await sql<{ hash: string; expired: boolean }[]>`
    update sessions set ended_at = now()
    where session_id in (
      select session_id from sessions where user_id = ${userId} and ended_at is null
      order by session_id desc offset ${keep})
    returning encode(token_hash, 'hex') as hash, expires_at <= now() as expired`;
  return rows.filter((row) => !row.expired).map((row) => row.hash);
}

/** Ends the user's sessions, all of them or all but one; returns the hashes, in hex, of those that had not expired. */
export async function endSessions(sql: Transaction, userId: number, exceptId?: number): Promise<string[]> {
  const others = exceptId === undefined ? sql`` : sql`and session_id <> ${exceptId}`;
  const rows = await sql<{ hash: string; expired: boolean }[]>`
    update sessions set ended_at = now() where user_id = ${userId} and ended_at is null ${others}
    returning encode(token_hash, 'hex') as hash, expires_at <= now() as expired`;
  return rows.filter((row) => !row.expired).map((row) => row.hash);
}

/** Removes sessions that ended or expired so many days ago; returns how many. */
export async function deleteOldSessions(sql: Queryable, retentionDays: number): Promise<number> {
  const result = await sql`
    delete from sessions where expires_at < now() - ${retentionDays}::float8 * interval '1 day'`;
  return result.count;
}
