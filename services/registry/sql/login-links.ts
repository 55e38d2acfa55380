import type { Transaction } from "../../db/pool.ts";

interface LoginLinkRow {
  readonly organization_id: number;
  readonly station_id: number;
  readonly expires_at: Date;
}

export async function createLoginLink(
  sql: Transaction,
  link: {
    readonly hash: Buffer;
    readonly organizationId: number;
    readonly stationId: number;
    readonly lifetimeMs: number;
  },
): Promise<LoginLinkRow> {
  const { hash, organizationId, stationId, lifetimeMs } = link;
  await sql`delete from login_links where organization_id = ${organizationId}`;
  const [row] = await sql<[LoginLinkRow]>`
    insert into login_links (link_hash, organization_id, station_id, expires_at)
    values (${hash}, ${organizationId}, ${stationId}, now() + ${lifetimeMs}::float8 * interval '1 ms')
    returning organization_id, station_id, expires_at`;
  return row;
}

/** Deletes the link, so that one transaction alone uses it. Undefined for a link that is unknown, spent or expired. */
export async function spendLoginLink(sql: Transaction, hash: Buffer): Promise<LoginLinkRow | undefined> {
  const [row] = await sql<(LoginLinkRow & { readonly is_valid: boolean })[]>`
    delete from login_links where link_hash = ${hash}
    returning organization_id, station_id, expires_at, expires_at > now() as is_valid`;
  return row?.is_valid === true ? row : undefined;
}
