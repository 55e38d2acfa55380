/** The catalogue items of a station, for the cashier's till. */
import { z } from "zod";
import { formatAmount } from "../../../machines/currency.ts";
import * as messages from "../../../services/bus/messages/catalogue-items.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery, pageOnWire } from "../../http/page.ts";
import { cashierRoute } from "../../http/route.ts";
import { amountSchema, currencySchema, idSchema } from "../../http/shared-schemas.ts";

const itemSchema = z
  .object({
    item_id: idSchema,
    name: z.string(),
    category: z.string().meta({ description: "A heading; empty for none." }),
    unit_amount: amountSchema,
    currency: currencySchema,
  })
  .meta({
    id: "StationItem",
    examples: [{ item_id: 42, name: "Cappuccino", category: "Drinks", unit_amount: "3.80", currency: "EUR" }],
  });
const stationItemsSchema = z.object({ items: z.array(itemSchema), has_more: hasMoreAfter });
const querySchema = z.strictObject(pageAfterQuery);

const itemJson = (item: messages.CatalogueItem): z.infer<typeof itemSchema> => ({
  item_id: item.itemId,
  name: item.name,
  category: item.category,
  unit_amount: formatAmount(item.unitAmountMinor, item.currency),
  currency: item.currency,
});

const listStationItems: SessionHandler<undefined, z.infer<typeof querySchema>> = async ({
  caller,
  deps,
  query,
  id,
}) => {
  const { since_id: sinceId, limit } = query;
  const request = { caller, stationId: id("station_id"), sinceId, limit };
  const found = await deps.bus.call(messages.listStationItems, request);
  const { page, hasMore } = pageOnWire(found.items.map(itemJson), found.hasMore);
  return ok({ items: page, has_more: hasMore });
};

export const stationItemRoutes = [
  cashierRoute({
    method: "GET",
    path: "/api/cashier/v1/stations/{station_id}/catalogue-items/",
    operation: "listStationItems",
    summary: "List what a station sells",
    description:
      "The items of the owner's catalogue that the station's filial sells in the station's currency. Open an order with their ids.",
    query: querySchema,
    replies: { 200: { description: "By id.", schema: stationItemsSchema } },
    errors: ["not_found"],
    handler: listStationItems,
  }),
];
