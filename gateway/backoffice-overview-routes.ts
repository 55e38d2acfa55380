/** The rows of the owner's API about the day's work (design §5). `gateway/routes.ts` joins them into the one table. */
import { orderSchema, ordersSchema } from "./contract/cashier.ts";
import {
  activeIntentsSchema,
  leasesSchema,
  ownOrdersQuerySchema,
  stationPageQuerySchema,
} from "./contract/overview.ts";
import { getOwnOrder, listOwnActiveIntents, listOwnLeases, listOwnOrders } from "./handlers/backoffice/overview.ts";
import { type Route, route, session } from "./http/route.ts";

const root = "/api/backoffice/v1";
const who = session("organization.manage");
const tag = "backoffice";

export const backofficeOverviewRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: `${root}/orders/`,
    operation: "listOrders",
    tag,
    summary: "List the orders",
    description: "Of all stations or of one. Without `before_id` the newest ones. Only cashiers write orders.",
    who,
    query: ownOrdersQuerySchema,
    replies: { 200: { description: "Newest first.", schema: ordersSchema } },
    errors: ["not_found"],
    handler: listOwnOrders,
  }),
  route({
    method: "GET",
    path: `${root}/orders/{order_id}/`,
    operation: "getOrder",
    tag,
    summary: "Read an order",
    description: "With its lines and the transaction that paid it.",
    who,
    replies: { 200: { description: "The order.", schema: orderSchema } },
    errors: ["not_found"],
    handler: getOwnOrder,
  }),
  route({
    method: "GET",
    path: `${root}/leases/`,
    operation: "listStationLeases",
    tag,
    summary: "See who drives which station",
    description: "Free stations are left out; `backoffice_get_station_lease` reads one, and frees it.",
    who,
    query: stationPageQuerySchema,
    replies: { 200: { description: "By station.", schema: leasesSchema } },
    errors: [],
    handler: listOwnLeases,
  }),
  route({
    method: "GET",
    path: `${root}/active-intents/`,
    operation: "listActiveIntents",
    tag,
    summary: "See what is being collected",
    description:
      "The one collection of each station that has not ended, with its reports. `backoffice_get_intent_timeline` explains what has ended.",
    who,
    query: stationPageQuerySchema,
    replies: { 200: { description: "By station.", schema: activeIntentsSchema } },
    errors: [],
    handler: listOwnActiveIntents,
  }),
];
