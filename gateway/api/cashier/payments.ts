/** The collections of one station for its cashiers, including those that have left the station's state. */
import { z } from "zod";
import { listPayments } from "../../../services/bus/messages/payments.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { ownStation } from "../../http/own-station.ts";
import { pageBeforeQuery, pageOnWire } from "../../http/page.ts";
import { cashierRoute } from "../../http/route.ts";
import { FRESHNESS, moment, paymentJson, paymentsSchema, searchQuery } from "../backoffice/payments.ts";

const querySchema = z.strictObject({
  from: moment("Only payments that were created at this moment or later."),
  to: moment("Only payments that were created before this moment."),
  search: searchQuery,
  ...pageBeforeQuery,
});

const listStationPayments: SessionHandler<undefined, z.infer<typeof querySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { stationId } = await ownStation(context);
  const { from, to, search, before_id: beforeId, limit } = query;
  const fromMs = from === undefined ? undefined : Date.parse(from);
  const toMs = to === undefined ? undefined : Date.parse(to);
  const found = await deps.bus.call(listPayments, { caller, stationId, fromMs, toMs, search, beforeId, limit });
  const { page, hasMore } = pageOnWire(found.payments.map(paymentJson), found.hasMore);
  return ok({ payments: page, has_more: hasMore });
};

export const stationPaymentRoutes = [
  cashierRoute({
    method: "GET",
    path: "/api/cashier/v1/stations/{station_id}/payments/",
    operation: "listStationPayments",
    summary: "List a station's payments",
    description: `One entry for each collection, such as those of today: \`cashier_list_intents\` has only the newest few. ${FRESHNESS}`,
    query: querySchema,
    replies: { 200: { description: "Newest first, by the time of creation.", schema: paymentsSchema } },
    errors: ["not_found"],
    handler: listStationPayments,
  }),
];
