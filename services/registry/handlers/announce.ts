/** A page of all sessions, for a bus that has lost data. The relay calls it. */
import type { announceSessions } from "../../bus/messages/announce.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import type { RegistryDeps } from "../deps.ts";
import { permissionsOf } from "../permissions.ts";
import { pageOfSessions } from "../sql/announced.ts";

export async function handleAnnounceSessions(
  { sql }: Pick<RegistryDeps, "sql">,
  { sinceId, limit }: RequestOf<typeof announceSessions>,
): Promise<ReplyOf<typeof announceSessions>> {
  const rows = await pageOfSessions(sql, { sinceId, limit: limit + 1 });
  const found = rows.map((row) => {
    const { session_id: sessionId, user_id: userId, organization_id: organizationId, name, role } = row;
    const expiresAtMs = row.expires_at.getTime();
    const entry = { sessionId, expiresAtMs, userId, name, organizationId, role, permissions: permissionsOf(role) };
    return { id: sessionId, hash: row.hash, entry: row.is_open ? entry : null };
  });
  const { page, hasMore } = firstPage(found, limit);
  return { entries: page, hasMore };
}
