/** The catalogue: the items that tills offer. For another organization's item, the error is `not_found`. */
import { z } from "zod";
import { formatAmount } from "../../../machines/currency.ts";
import * as messages from "../../../services/bus/messages/catalogue-items.ts";
import { creationHeaderSchema, creationOf } from "../../http/command-id.ts";
import { ApiError, created, noContent, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery, pageOnWire, queryId } from "../../http/page.ts";
import { priceMinor, priceSchema } from "../../http/price.ts";
import { backofficeRoute } from "../../http/route.ts";
import {
  activeCurrencySchema,
  amountSchema,
  currencySchema,
  idSchema,
  nameSchema,
  timestampSchema,
  toTimestamp,
} from "../../http/shared-schemas.ts";

const categorySchema = z
  .union([z.literal(""), nameSchema])
  .meta({ description: "A heading under which a till shows the item; empty for none.", examples: ["Drinks"] });

const filialIdSchema = idSchema
  .nullable()
  .meta({ description: "The only filial that sells the item; null when all filials sell it.", examples: [null] });

const example = {
  item_id: 42,
  filial_id: null,
  name: "Cappuccino",
  category: "Drinks",
  unit_amount: "3.80",
  currency: "EUR",
  created_at: "2026-11-20T12:00:00.000Z",
  changed_at: "2026-11-20T12:00:00.000Z",
};

const itemSchema = z
  .object({
    item_id: idSchema,
    filial_id: filialIdSchema,
    name: z.string(),
    category: z.string(),
    unit_amount: amountSchema,
    currency: currencySchema,
    created_at: timestampSchema,
    changed_at: timestampSchema,
  })
  .meta({ id: "CatalogueItem", examples: [example] });
const itemsSchema = z.object({ items: z.array(itemSchema), has_more: hasMoreAfter });

const querySchema = z.strictObject({
  filial_id: queryId().optional().meta({
    description:
      "Only the items that this filial sells, including those that all filials sell; every item when left out.",
  }),
  ...pageAfterQuery,
});

const createBodySchema = z
  .strictObject({
    name: nameSchema,
    category: categorySchema.default(""),
    unit_amount: priceSchema,
    currency: activeCurrencySchema,
    filial_id: filialIdSchema.default(null),
  })
  .meta({
    id: "CreateCatalogueItem",
    examples: [{ name: "Cappuccino", category: "Drinks", unit_amount: "3.80", currency: "EUR" }],
  });

const changeBodySchema = z
  .strictObject({
    name: nameSchema.optional(),
    category: categorySchema.optional(),
    unit_amount: priceSchema.optional(),
    filial_id: filialIdSchema.optional(),
  })
  .meta({ id: "ChangeCatalogueItem", examples: [{ unit_amount: "4.20" }] });

const itemJson = (item: messages.CatalogueItem): z.infer<typeof itemSchema> => ({
  item_id: item.itemId,
  filial_id: item.filialId,
  name: item.name,
  category: item.category,
  unit_amount: formatAmount(item.unitAmountMinor, item.currency),
  currency: item.currency,
  created_at: toTimestamp(item.createdAtMs),
  changed_at: toTimestamp(item.changedAtMs),
});

function requirePriceMinor(price: string, currency: string): string {
  const minor = priceMinor(price, currency, "/unit_amount");
  if (typeof minor === "string") return minor;
  throw new ApiError("invalid_request", { errors: [minor] });
}

const listCatalogueItems: SessionHandler<undefined, z.infer<typeof querySchema>> = async ({ caller, deps, query }) => {
  const { filial_id: filialId, since_id: sinceId, limit } = query;
  const found = await deps.bus.call(messages.listCatalogueItems, { caller, filialId, sinceId, limit });
  const { page, hasMore } = pageOnWire(found.items.map(itemJson), found.hasMore);
  return ok({ items: page, has_more: hasMore });
};

const createCatalogueItem: SessionHandler<z.infer<typeof createBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { name, category, unit_amount, currency, filial_id: filialId } = body;
  const unitAmountMinor = requirePriceMinor(unit_amount, currency);
  const creation = creationOf(context, "catalogue_item");
  const request = { caller, filialId, name, category, unitAmountMinor, currency, creation };
  return created(itemJson((await deps.bus.call(messages.createCatalogueItem, request)).item));
};

const getCatalogueItem: SessionHandler = async ({ caller, deps, id }) => {
  const { item } = await deps.bus.call(messages.getCatalogueItem, { caller, itemId: id("item_id") });
  return ok(itemJson(item));
};

const changeCatalogueItem: SessionHandler<z.infer<typeof changeBodySchema>> = async ({ caller, deps, body, id }) => {
  const itemId = id("item_id");
  const { name, category, unit_amount, filial_id: filialId } = body;
  // Converting the price needs the item's currency, which never changes.
  const { item: before } = await deps.bus.call(messages.getCatalogueItem, { caller, itemId });
  const unitAmountMinor = unit_amount === undefined ? undefined : requirePriceMinor(unit_amount, before.currency);
  const request = { caller, itemId, filialId, name, category, unitAmountMinor };
  return ok(itemJson((await deps.bus.call(messages.changeCatalogueItem, request)).item));
};

const deleteCatalogueItem: SessionHandler = async ({ caller, deps, id }) => {
  await deps.bus.call(messages.deleteCatalogueItem, { caller, itemId: id("item_id") });
  return noContent();
};

const list = "/api/backoffice/v1/catalogue-items/";
const one = `${list}{item_id}/` as const;

export const catalogueItemRoutes = [
  backofficeRoute({
    method: "GET",
    path: list,
    operation: "listCatalogueItems",
    summary: "List the catalogue",
    description:
      "The items that tills offer, each with a name and a price. An order may also have lines that are not in the catalogue.",
    query: querySchema,
    replies: { 200: { description: "By id.", schema: itemsSchema } },
    errors: ["not_found"],
    handler: listCatalogueItems,
  }),
  backofficeRoute({
    method: "POST",
    path: list,
    operation: "createCatalogueItem",
    summary: "Add an item to the catalogue",
    description:
      "Tills offer the item at the stations of its filial (or of all filials) that have this currency. Names need not be unique.",
    headers: creationHeaderSchema,
    body: createBodySchema,
    replies: { 201: { description: "The item.", schema: itemSchema } },
    errors: ["not_found", "conflict", "idempotency_key_reused"],
    handler: createCatalogueItem,
  }),
  backofficeRoute({
    method: "GET",
    path: one,
    operation: "getCatalogueItem",
    summary: "Read an item of the catalogue",
    description: "The answer has the same fields as the list.",
    replies: { 200: { description: "The item.", schema: itemSchema } },
    errors: ["not_found"],
    handler: getCatalogueItem,
  }),
  backofficeRoute({
    method: "PATCH",
    path: one,
    operation: "changeCatalogueItem",
    summary: "Change an item of the catalogue",
    description:
      "Only the fields in the request change; the currency cannot change. Existing orders keep the name and the price of their lines.",
    body: changeBodySchema,
    replies: { 200: { description: "The item after the change.", schema: itemSchema } },
    errors: ["not_found"],
    handler: changeCatalogueItem,
  }),
  backofficeRoute({
    method: "DELETE",
    path: one,
    operation: "deleteCatalogueItem",
    summary: "Remove an item from the catalogue",
    description: "Tills no longer offer it. Orders that have it stay as they are.",
    replies: { 204: { description: "It is removed.", schema: null } },
    errors: ["not_found"],
    handler: deleteCatalogueItem,
  }),
];
