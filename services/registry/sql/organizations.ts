import type { Queryable, Transaction } from "../../db/pool.ts";

/** Any number; it only must differ from other advisory locks of ours. */
const SEED_LOCK = 0x5eed;

/** Makes those who seed the sandbox at the same time take turns, until the transaction ends. */
export async function lockSeeding(sql: Transaction): Promise<void> {
  await sql`select pg_advisory_xact_lock(${SEED_LOCK}, 0)`;
}

export async function findSandboxOrganization(sql: Transaction): Promise<number | undefined> {
  const [row] = await sql<{ organization_id: number }[]>`select organization_id from organizations where sandbox`;
  return row?.organization_id;
}

export async function insertOrganization(
  sql: Transaction,
  organization: { readonly name: string; readonly sandbox: boolean },
): Promise<number> {
  const [row] = await sql<[{ organization_id: number }]>`
    insert into organizations (name, sandbox) values (${organization.name}, ${organization.sandbox})
    returning organization_id`;
  return row.organization_id;
}

export interface OrganizationRow {
  readonly organization_id: number;
  readonly name: string;
  readonly sandbox: boolean;
  readonly created_at: Date;
}

/** Up to `limit` organizations after one of them, by id. */
export async function listOrganizations(
  sql: Queryable,
  page: { readonly sinceId: number; readonly limit: number },
): Promise<OrganizationRow[]> {
  return sql<OrganizationRow[]>`
    select organization_id, name, sandbox, created_at from organizations
    where organization_id > ${page.sinceId} order by organization_id limit ${page.limit}`;
}

export async function findOrganization(sql: Queryable, organizationId: number): Promise<OrganizationRow | undefined> {
  const [row] = await sql<OrganizationRow[]>`
    select organization_id, name, sandbox, created_at from organizations where organization_id = ${organizationId}`;
  return row;
}
