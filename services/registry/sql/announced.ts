/** What the bus is told anew after it has lost data: pages over all organizations, in the order of ids. */
import type { Queryable } from "../../db/pool.ts";
import type { UserRow } from "./users.ts";

interface Page {
  readonly sinceId: number;
  readonly limit: number;
}

export interface AnnouncedSessionRow extends Pick<UserRow, "user_id" | "organization_id" | "name" | "role"> {
  readonly session_id: number;
  readonly hash: string;
  readonly expires_at: Date;
  readonly is_open: boolean;
}

export async function pageOfSessions(sql: Queryable, { sinceId, limit }: Page): Promise<AnnouncedSessionRow[]> {
  return sql<AnnouncedSessionRow[]>`
    select s.session_id, encode(s.token_hash, 'hex') as hash, s.expires_at, s.ended_at is null as is_open,
           u.user_id, u.organization_id, u.name, u.role
    from sessions s join users u using (user_id)
    where s.session_id > ${sinceId} and s.expires_at > now() order by s.session_id limit ${limit}`;
}
