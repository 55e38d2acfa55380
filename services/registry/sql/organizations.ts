import type { Queryable, Transaction } from "../../db/pool.ts";

/** Any number; it only must differ from the other advisory locks of the service. */
const SEED_LOCK = 0x5eed;

export interface OrganizationRow {
  readonly organization_id: number;
  readonly name: string;
  readonly sandbox: boolean;
  readonly created_at: Date;
}

const organizationColumns = (sql: Queryable) => sql`organization_id, name, sandbox, created_at`;

export async function createOrganization(
  sql: Transaction,
  { name, sandbox }: { readonly name: string; readonly sandbox: boolean },
): Promise<OrganizationRow> {
  const [row] = await sql<[OrganizationRow]>`
    insert into organizations (name, sandbox) values (${name}, ${sandbox}) returning ${organizationColumns(sql)}`;
  return row;
}

/** Up to `limit` organizations after one of them, by id. */
export async function listOrganizations(
  sql: Queryable,
  { sinceId, limit }: { readonly sinceId: number; readonly limit: number },
): Promise<OrganizationRow[]> {
  return sql<OrganizationRow[]>`
    select ${organizationColumns(sql)} from organizations
    where organization_id > ${sinceId} order by organization_id limit ${limit}`;
}

export async function getOrganization(sql: Queryable, organizationId: number): Promise<OrganizationRow | undefined> {
  const [row] = await sql<OrganizationRow[]>`
    select ${organizationColumns(sql)} from organizations where organization_id = ${organizationId}`;
  return row;
}

export async function getSandboxOrganization(sql: Transaction): Promise<OrganizationRow | undefined> {
  const [row] = await sql<OrganizationRow[]>`select ${organizationColumns(sql)} from organizations where sandbox`;
  return row;
}

/** Lets only one transaction at a time seed the sandbox. */
export async function lockSeeding(sql: Transaction): Promise<void> {
  await sql`select pg_advisory_xact_lock(${SEED_LOCK}, 0)`;
}
