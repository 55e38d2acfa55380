/** The catalogue that tills offer. It is no order truth: an order takes a copy of an item's name and price. */
import { isDeepStrictEqual } from "node:util";
import { amountFitsWire } from "../../machines/currency.ts";
import { requirePermission } from "../bus/messages/caller.ts";
import type * as catalogue from "../bus/messages/catalogue-items.ts";
import { firstPage } from "../bus/page.ts";
import { existing, invalidField, RefusedError } from "../bus/refusals.ts";
import { createOnce } from "../db/creations.ts";
import type { Queryable, Transaction } from "../db/pool.ts";
import type { RegistryHandler } from "./deps.ts";
import { ownerEvent } from "./events.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import * as sql from "./sql/catalogue-items.ts";
import { recordEvent } from "./sql/events.ts";
import { getFilial, getFirstFilial, lockFilial } from "./sql/filials.ts";
import { getStation } from "./sql/stations.ts";

const itemMessage = (row: sql.CatalogueItemRow): catalogue.CatalogueItem => ({
  itemId: row.item_id,
  filialId: row.filial_id,
  name: row.name,
  category: row.category,
  unitAmountMinor: String(row.unit_amount_minor),
  currency: row.currency,
  createdAtMs: row.created_at.getTime(),
  changedAtMs: row.changed_at.getTime(),
});

/** What the audit log keeps of an item, in the names of the wire. */
const facts = (item: Pick<sql.CatalogueItemRow, "filial_id" | "name" | "category" | "unit_amount_minor">) => ({
  name: item.name,
  category: item.category,
  unit_amount_minor: String(item.unit_amount_minor),
  filial_id: item.filial_id,
});

export const listCatalogueItems: RegistryHandler<typeof catalogue.listCatalogueItems> = async (deps, request) => {
  const { caller, filialId, sinceId, limit } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  if (filialId !== undefined) existing(await getFilial(deps.sql, organizationId, filialId), "filial_id");
  const rows = await sql.listCatalogueItems(deps.sql, { organizationId, filialId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(itemMessage), limit);
  return { items: page, hasMore };
};

export const listStationItems: RegistryHandler<typeof catalogue.listStationItems> = async (deps, request) => {
  const { caller, stationId, sinceId, limit } = request;
  const { organizationId } = requirePermission(caller, "payments.collect");
  const station = existing(await getStation(deps.sql, organizationId, stationId));
  const { filial_id: filialId, currency } = station;
  const page = { organizationId, filialId, currency, sinceId, limit: limit + 1 };
  const rows = await sql.listCatalogueItems(deps.sql, page);
  const { page: items, hasMore } = firstPage(rows.map(itemMessage), limit);
  return { items, hasMore };
};

export const createCatalogueItem: RegistryHandler<typeof catalogue.createCatalogueItem> = async (deps, request) => {
  const { caller, filialId, name, category, unitAmountMinor, currency, creation } = request;
  requirePermission(caller, "organization.manage");
  requirePrice(unitAmountMinor, currency);
  const { organizationId } = caller;
  const create = async (tx: Transaction): Promise<sql.CatalogueItemRow> => {
    await requireRoom(tx, organizationId);
    if (filialId !== null) existing(await lockFilial(tx, organizationId, filialId), "filial_id");
    const row = await sql.createCatalogueItem(tx, {
      organizationId,
      filialId,
      name,
      category,
      unitAmountMinor,
      currency,
    });
    const subject = { kind: "catalogue_item", id: row.item_id } as const;
    await recordEvent(tx, ownerEvent(caller, "catalogue_item_created", subject, { ...facts(row), currency }));
    return row;
  };
  const again = (tx: Transaction, id: number) => sql.getCatalogueItem(tx, organizationId, id);
  return { item: itemMessage(await createOnce(deps.sql, creation, { create, again, idOf: (row) => row.item_id })) };
};

export const getCatalogueItem: RegistryHandler<typeof catalogue.getCatalogueItem> = async (
  deps,
  { caller, itemId },
) => {
  requirePermission(caller, "organization.manage");
  return { item: itemMessage(existing(await sql.getCatalogueItem(deps.sql, caller.organizationId, itemId))) };
};

/** With the present values it changes nothing and records no event. */
export const changeCatalogueItem: RegistryHandler<typeof catalogue.changeCatalogueItem> = async (deps, request) => {
  const { caller, itemId } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  return deps.sql.begin(async (tx) => {
    const before = existing(await sql.lockCatalogueItem(tx, organizationId, itemId));
    const filialId = request.filialId === undefined ? before.filial_id : request.filialId;
    if (filialId !== null && filialId !== before.filial_id) {
      existing(await getFilial(tx, organizationId, filialId), "filial_id");
    }
    const unitAmountMinor = request.unitAmountMinor ?? String(before.unit_amount_minor);
    requirePrice(unitAmountMinor, before.currency);
    const { name = before.name, category = before.category } = request;
    const next = { name, category, unit_amount_minor: unitAmountMinor, filial_id: filialId };
    if (isDeepStrictEqual(facts(before), next)) return { item: itemMessage(before) };
    const row = await sql.changeCatalogueItem(tx, itemId, { filialId, name, category, unitAmountMinor });
    const subject = { kind: "catalogue_item", id: itemId } as const;
    const data = { currency: before.currency, from: facts(before), to: facts(row) };
    await recordEvent(tx, ownerEvent(caller, "catalogue_item_changed", subject, data));
    return { item: itemMessage(row) };
  });
};

export const deleteCatalogueItem: RegistryHandler<typeof catalogue.deleteCatalogueItem> = async (
  deps,
  { caller, itemId },
) => {
  requirePermission(caller, "organization.manage");
  return deps.sql.begin(async (tx) => {
    const before = existing(await sql.lockCatalogueItem(tx, caller.organizationId, itemId));
    await sql.deleteCatalogueItem(tx, itemId);
    const subject = { kind: "catalogue_item", id: itemId } as const;
    const data = { ...facts(before), currency: before.currency };
    await recordEvent(tx, ownerEvent(caller, "catalogue_item_deleted", subject, data));
    return {};
  });
};

function requirePrice(unitAmountMinor: string, currency: string): void {
  if (amountFitsWire(BigInt(unitAmountMinor), currency)) return;
  throw invalidField("/unit_amount", "not_of_currency", "This currency cannot have this price.");
}

/** Locks the oldest filial, so that two requests at the limit are counted one after the other. */
async function requireRoom(tx: Parameters<typeof lockFilial>[0], organizationId: number): Promise<void> {
  const filial = await getFirstFilial(tx, organizationId);
  if (filial !== undefined) await lockFilial(tx, organizationId, filial.filial_id);
  if ((await sql.countCatalogueItems(tx, organizationId)) < REGISTRY_LIMITS.catalogueItems) return;
  const detail = `A catalogue has at most ${REGISTRY_LIMITS.catalogueItems} items; delete one first.`;
  throw new RefusedError({ code: "conflict", detail });
}

/** What the sandbox sells. */
const SANDBOX_ITEMS = [
  { name: "Espresso", category: "Drinks", unitAmountMinor: "260" },
  { name: "Cappuccino", category: "Drinks", unitAmountMinor: "380" },
  { name: "Sparkling water", category: "Drinks", unitAmountMinor: "320" },
  { name: "Lemonade", category: "Drinks", unitAmountMinor: "450" },
  { name: "Soup of the day", category: "Food", unitAmountMinor: "690" },
  { name: "Margherita pizza", category: "Food", unitAmountMinor: "1150" },
  { name: "Caesar salad", category: "Food", unitAmountMinor: "980" },
  { name: "Cheesecake", category: "Food", unitAmountMinor: "540" },
] as const;

/** Creates the items of a sandbox that has none, and returns their ids. Items that the owner has changed stay. */
export async function seedCatalogueItems(tx: Queryable, organizationId: number): Promise<number[]> {
  if ((await sql.countCatalogueItems(tx, organizationId)) > 0) return [];
  const ids: number[] = [];
  for (const item of SANDBOX_ITEMS) {
    const row = await sql.createCatalogueItem(tx, { organizationId, filialId: null, currency: "EUR", ...item });
    ids.push(row.item_id);
  }
  return ids;
}
