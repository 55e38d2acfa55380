/**
 * The catalogue: items with their prices, of the whole organization or of one filial. Another organization's item is
 * `not_found`. Amounts are minor units as strings of digits.
 */
import { z } from "zod";
import { once, repeatable } from "../operation.ts";
import { pageAfter } from "../page.ts";
import { amountMinorSchema as unitAmountMinor } from "./amount.ts";
import { callerSchema as caller } from "./caller.ts";
import { creationSchema as creation } from "./creation.ts";
import { currencySchema } from "./currency.ts";
import { nameSchema as name } from "./name.ts";

const id = z.int().positive();
/** The heading on the cashier's screen; empty for none. */
const category = z.union([z.literal(""), name]);

const catalogueItemSchema = z.object({
  itemId: id,
  /** Null: every filial sells it. */
  filialId: id.nullable(),
  name: z.string(),
  category: z.string(),
  unitAmountMinor,
  currency: z.string(),
  createdAtMs: z.number(),
  changedAtMs: z.number(),
});
export type CatalogueItem = z.infer<typeof catalogueItemSchema>;
const itemReply = z.object({ item: catalogueItemSchema });
const itemsReply = z.object({ items: z.array(catalogueItemSchema), hasMore: z.boolean() });

/**
 * With `filialId`: the items that the filial sells, with the items of all filials. Needs `organization.manage`, as the
 * changes do.
 */
export const listCatalogueItems = repeatable(
  "registry.listCatalogueItems",
  z.object({ caller, filialId: id.optional(), ...pageAfter }),
  itemsReply,
);
/** The items that a station can sell: those of its filial in its currency. Needs `payments.collect`. */
export const listStationItems = repeatable(
  "registry.listStationItems",
  z.object({ caller, stationId: id, ...pageAfter }),
  itemsReply,
);
/**
 * Refuses with `conflict` when the organization has the most items that it may have, and with `invalid_request` for a
 * price that the currency cannot have.
 */
export const createCatalogueItem = once(
  "registry.createCatalogueItem",
  z.object({
    caller,
    filialId: id.nullable(),
    name,
    category,
    unitAmountMinor,
    currency: currencySchema,
    creation: creation.optional(),
  }),
  itemReply,
);
export const getCatalogueItem = repeatable("registry.getCatalogueItem", z.object({ caller, itemId: id }), itemReply);
/** Changes an item, except its currency. Existing orders keep the name and the price. */
export const changeCatalogueItem = once(
  "registry.changeCatalogueItem",
  z.object({
    caller,
    itemId: id,
    filialId: id.nullable().optional(),
    name: name.optional(),
    category: category.optional(),
    unitAmountMinor: unitAmountMinor.optional(),
  }),
  itemReply,
);
export const deleteCatalogueItem = once("registry.deleteCatalogueItem", z.object({ caller, itemId: id }), z.object({}));
