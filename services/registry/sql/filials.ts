import type { Queryable, Transaction } from "../../db/pool.ts";

export interface FilialRow {
  readonly filial_id: number;
  readonly name: string;
  readonly created_at: Date;
}

export async function createFilial(sql: Queryable, organizationId: number, name: string): Promise<FilialRow> {
  const [row] = await sql<[FilialRow]>`
    insert into filials (organization_id, name) values (${organizationId}, ${name})
    returning filial_id, name, created_at`;
  return row;
}

/** Up to `limit` filials of the organization after one of them, by id. */
export async function listFilials(
  sql: Queryable,
  page: { readonly organizationId: number; readonly sinceId: number; readonly limit: number },
): Promise<FilialRow[]> {
  return sql<FilialRow[]>`
    select filial_id, name, created_at from filials
    where organization_id = ${page.organizationId} and filial_id > ${page.sinceId}
    order by filial_id limit ${page.limit}`;
}

export async function countFilials(sql: Queryable, organizationId: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*) as count from filials where organization_id = ${organizationId}`;
  return row.count;
}

export async function getFilial(
  sql: Queryable,
  organizationId: number,
  filialId: number,
  lock = sql``,
): Promise<FilialRow | undefined> {
  const [row] = await sql<FilialRow[]>`
    select filial_id, name, created_at from filials
    where organization_id = ${organizationId} and filial_id = ${filialId} ${lock}`;
  return row;
}

/** The organization's filial, locked until the transaction ends, so that renamings are recorded one after another. */
export const lockFilial = async (
  tx: Transaction,
  organizationId: number,
  filialId: number,
): Promise<FilialRow | undefined> => await getFilial(tx, organizationId, filialId, tx`for no key update`);

export async function renameFilial(sql: Queryable, filialId: number, name: string): Promise<FilialRow> {
  const [row] = await sql<[FilialRow]>`
    update filials set name = ${name} where filial_id = ${filialId} returning filial_id, name, created_at`;
  return row;
}

/** The oldest filial of the organization. */
export async function getFirstFilial(sql: Queryable, organizationId: number): Promise<FilialRow | undefined> {
  const [row] = await sql<FilialRow[]>`
    select filial_id, name, created_at from filials where organization_id = ${organizationId} order by filial_id limit 1`;
  return row;
}
