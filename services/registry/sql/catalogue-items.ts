import type { Queryable, Transaction } from "../../db/pool.ts";

export interface CatalogueItemRow {
  readonly item_id: number;
  readonly organization_id: number;
  readonly filial_id: number | null;
  readonly name: string;
  readonly category: string;
  readonly unit_amount_minor: number;
  readonly currency: string;
  readonly created_at: Date;
  readonly changed_at: Date;
}

interface NewCatalogueItem {
  readonly organizationId: number;
  readonly filialId: number | null;
  readonly name: string;
  readonly category: string;
  readonly unitAmountMinor: string;
  readonly currency: string;
}

interface ItemPage {
  readonly organizationId: number;
  readonly sinceId: number;
  readonly limit: number;
}

/** Up to `limit` items of the organization after one of them, by id; with a filial only what it sells. */
export async function listCatalogueItems(
  sql: Queryable,
  page: ItemPage & { readonly filialId: number | undefined; readonly currency?: string },
): Promise<CatalogueItemRow[]> {
  const { filialId, currency } = page;
  const ofFilial = filialId === undefined ? sql`` : sql`and (filial_id is null or filial_id = ${filialId})`;
  const inCurrency = currency === undefined ? sql`` : sql`and currency = ${currency}`;
  return sql<CatalogueItemRow[]>`
    select * from catalogue_items
    where organization_id = ${page.organizationId} and item_id > ${page.sinceId} ${ofFilial} ${inCurrency}
    order by item_id limit ${page.limit}`;
}

export async function countCatalogueItems(sql: Queryable, organizationId: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*) as count from catalogue_items where organization_id = ${organizationId}`;
  return row.count;
}

export async function createCatalogueItem(sql: Queryable, item: NewCatalogueItem): Promise<CatalogueItemRow> {
  const { organizationId, filialId, name, category, unitAmountMinor, currency } = item;
  const [row] = await sql<[CatalogueItemRow]>`
    insert into catalogue_items (organization_id, filial_id, name, category, unit_amount_minor, currency)
    values (${organizationId}, ${filialId}, ${name}, ${category}, ${unitAmountMinor}::bigint, ${currency})
    returning *`;
  return row;
}

export async function getCatalogueItem(
  sql: Queryable,
  organizationId: number,
  itemId: number,
  lock = sql``,
): Promise<CatalogueItemRow | undefined> {
  const [row] = await sql<CatalogueItemRow[]>`
    select * from catalogue_items where organization_id = ${organizationId} and item_id = ${itemId} ${lock}`;
  return row;
}

/** The organization's item, locked until the transaction ends, so that its changes are recorded one after another. */
export const lockCatalogueItem = async (
  tx: Transaction,
  organizationId: number,
  itemId: number,
): Promise<CatalogueItemRow | undefined> => await getCatalogueItem(tx, organizationId, itemId, tx`for update`);

export async function changeCatalogueItem(
  sql: Transaction,
  itemId: number,
  item: Pick<NewCatalogueItem, "filialId" | "name" | "category" | "unitAmountMinor">,
): Promise<CatalogueItemRow> {
  const [row] = await sql<[CatalogueItemRow]>`
    update catalogue_items set filial_id = ${item.filialId}, name = ${item.name}, category = ${item.category},
      unit_amount_minor = ${item.unitAmountMinor}::bigint, changed_at = now()
    where item_id = ${itemId} returning *`;
  return row;
}

export async function deleteCatalogueItem(sql: Transaction, itemId: number): Promise<void> {
  await sql`delete from catalogue_items where item_id = ${itemId}`;
}
