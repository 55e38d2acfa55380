/** The rows of the cashier's API (design §5). `gateway/routes.ts` joins them into the one table. */

import {
  cashierStationsQuerySchema,
  cashierStationsSchema,
  leaseBodySchema,
  leaseRenewalBodySchema,
  leaseSchema,
  orderLinesBodySchema,
  orderSchema,
  ordersQuerySchema,
  ordersSchema,
  routesSchema,
} from "./contract/cashier.ts";
import { attestBodySchema, createIntentBodySchema, intentSchema, intentsSchema } from "./contract/intent.ts";
import { LIVE_DESCRIPTION, liveMessageSchema } from "./contract/live.ts";
import { attestIntent } from "./handlers/cashier/attest-intent.ts";
import { cancelIntent } from "./handlers/cashier/cancel-intent.ts";
import { createIntent } from "./handlers/cashier/create-intent.ts";
import { getIntent, listIntents } from "./handlers/cashier/intent.ts";
import { acquireLease, getLease, releaseLease, renewLease } from "./handlers/cashier/lease.ts";
import { listCashierOrders } from "./handlers/cashier/list-orders.ts";
import { listRoutes } from "./handlers/cashier/list-routes.ts";
import { listCashierStations } from "./handlers/cashier/list-stations.ts";
import { readLiveState } from "./handlers/cashier/live-state.ts";
import { openCashierOrder } from "./handlers/cashier/open-order.ts";
import { changeCashierOrder, getCashierOrder, voidCashierOrder } from "./handlers/cashier/order.ts";
import { idempotencyHeaderSchema } from "./http/command-id.ts";
import { type Route, route, session } from "./http/route.ts";

const root = "/api/cashier/v1";
const station = `${root}/stations/{station_id}` as const;
const intent = `${station}/intents/{intent_id}` as const;
const who = session("payments.collect");
const tag = "cashier";
const headers = idempotencyHeaderSchema;

const leaseReply = { 200: { description: "The lease after this.", schema: leaseSchema } };
const orderReply = { 200: { description: "The order after this.", schema: orderSchema } };
const intentReply = { 200: { description: "The intent after this.", schema: intentSchema } };

export const cashierRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: `${root}/stations/`,
    operation: "listStations",
    tag,
    summary: "List the stations",
    description: "All stations of the organization, with who drives each and what it is collecting.",
    who,
    query: cashierStationsQuerySchema,
    replies: { 200: { description: "By id.", schema: cashierStationsSchema } },
    errors: [],
    handler: listCashierStations,
  }),
  route({
    method: "GET",
    path: `${station}/lease/`,
    operation: "getLease",
    tag,
    summary: "See who drives the station",
    description:
      "A lease ends at `expires_at` unless it is renewed before, and with the session that took or renewed it last: on sign-out, suspension, a new password, a change of role.",
    who,
    replies: { 200: { description: "The lease, and the last one that another person ended.", schema: leaseSchema } },
    errors: ["not_found"],
    handler: getLease,
  }),
  route({
    method: "POST",
    path: `${station}/lease/`,
    operation: "acquireLease",
    tag,
    summary: "Take the station",
    description:
      "The cashier who holds the lease drives the station's collections, from any of their sessions. Taking it again renews it. `take_over_from` takes it over from another cashier. A repetition under the same `Idempotency-Key` takes nothing again and shows the lease as it is now; once that lease has ended it is refused: with `station_leased` while another cashier drives the station, with `lease_required` while it is free. Then send a new key.",
    who,
    headers,
    body: leaseBodySchema,
    bodyOptional: true,
    replies: leaseReply,
    errors: ["not_found", "station_leased", "lease_required", "station_closed", "conflict", "idempotency_key_reused"],
    handler: acquireLease,
  }),
  route({
    method: "PUT",
    path: `${station}/lease/`,
    operation: "renewLease",
    tag,
    summary: "Keep the station",
    description:
      "Only its holder can; a lease that has run out is taken again with POST. The new time counts from now, also when the request is repeated, so it needs no key.",
    who,
    body: leaseRenewalBodySchema,
    bodyOptional: true,
    replies: leaseReply,
    errors: ["not_found", "station_leased", "lease_required", "conflict"],
    handler: renewLease,
  }),
  route({
    method: "DELETE",
    path: `${station}/lease/`,
    operation: "releaseLease",
    tag,
    summary: "Give the station back",
    description:
      "A collection under way goes on, and whoever takes the station next attests or cancels it. A free station answers alike. A repetition under the same `Idempotency-Key` releases nothing again and shows the lease as it is now.",
    who,
    headers,
    replies: leaseReply,
    errors: ["not_found", "station_leased"],
    handler: releaseLease,
  }),
  route({
    method: "GET",
    path: `${station}/routes/`,
    operation: "listRoutes",
    tag,
    summary: "See the routes offered now",
    description: "Each route that is not offered says why. A freeze withdraws all but cash.",
    who,
    replies: { 200: { description: "The routes and the companions behind `smart_pos`.", schema: routesSchema } },
    errors: ["not_found"],
    handler: listRoutes,
  }),
  route({
    method: "GET",
    path: `${station}/live/`,
    operation: "followLive",
    tag,
    summary: "Follow a station",
    description: LIVE_DESCRIPTION,
    who,
    upgrades: true,
    replies: {
      200: { description: "A plain GET: the newest state, once, as `state`.", schema: liveMessageSchema },
    },
    errors: ["not_found", "csrf_refused", "throttled"],
    handler: readLiveState,
  }),
  route({
    method: "POST",
    path: `${station}/orders/`,
    operation: "openOrder",
    tag,
    summary: "Open an order",
    description:
      "Writing orders needs no lease of the station: the lease guards collections only. A suspended or closed station takes no order.",
    who,
    headers,
    body: orderLinesBodySchema,
    replies: { 201: { description: "The order.", schema: orderSchema } },
    errors: ["not_found", "station_suspended", "station_closed", "idempotency_key_reused"],
    awaitsEffect: true,
    handler: openCashierOrder,
  }),
  route({
    method: "GET",
    path: `${station}/orders/`,
    operation: "listOrders",
    tag,
    summary: "List a station's orders",
    description: "Without `before_id` the newest ones.",
    who,
    query: ordersQuerySchema,
    replies: { 200: { description: "Newest first.", schema: ordersSchema } },
    errors: ["not_found"],
    handler: listCashierOrders,
  }),
  route({
    method: "GET",
    path: `${root}/orders/{order_id}/`,
    operation: "getOrder",
    tag,
    summary: "Read an order",
    description: "Of any station of the organization. `transaction` tells how it was paid.",
    who,
    replies: { 200: { description: "The order.", schema: orderSchema } },
    errors: ["not_found"],
    handler: getCashierOrder,
  }),
  route({
    method: "PUT",
    path: `${root}/orders/{order_id}/lines/`,
    operation: "changeOrder",
    tag,
    summary: "Replace an order's lines",
    description:
      "Needs no lease of the station: the lease guards collections only. A collection under way keeps the amount that the guest was shown; attesting it is then refused. An order at a suspended or closed station cannot be changed.",
    who,
    body: orderLinesBodySchema,
    replies: orderReply,
    errors: ["not_found", "conflict", "station_suspended", "station_closed"],
    awaitsEffect: true,
    handler: changeCashierOrder,
  }),
  route({
    method: "POST",
    path: `${root}/orders/{order_id}/void/`,
    operation: "voidOrder",
    tag,
    summary: "Void an order",
    description:
      "Needs no lease of the station: the lease guards collections only. Possible at a suspended or closed station too, so that nothing is left open there.",
    who,
    replies: orderReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: voidCashierOrder,
  }),
  route({
    method: "POST",
    path: `${station}/intents/`,
    operation: "createIntent",
    tag,
    summary: "Begin a collection",
    description:
      "Picks a route for an order. One station has one active collection at a time. An order that is not at this station is `not_found`. Under a repeated `Idempotency-Key`, `order_id`, `route` and `lifetime_seconds` have to be what the collection was begun with, and on `smart_pos` also `device_id`. A member that is left out is not compared, nor is `confirms_money_may_have_moved`.",
    who,
    headers,
    body: createIntentBodySchema,
    replies: { 201: { description: "The intent.", schema: intentSchema } },
    errors: [
      "not_found",
      "lease_required",
      "station_leased",
      "collection_active",
      "route_not_offered",
      "money_may_have_moved",
      "order_changed",
      "order_already_paid",
      "order_voided",
      "amount_not_collectable",
      "idempotency_key_reused",
    ],
    handler: createIntent,
  }),
  route({
    method: "GET",
    path: `${station}/intents/`,
    operation: "listIntents",
    tag,
    summary: "List the station's recent collections",
    description: "The few that the station still has at hand; for older ones there is `GET` of the intent itself.",
    who,
    replies: {
      200: { description: "The active one first, then the ended ones, newest first.", schema: intentsSchema },
    },
    errors: ["not_found"],
    handler: listIntents,
  }),
  route({
    method: "GET",
    path: `${intent}/`,
    operation: "getIntent",
    tag,
    summary: "Read a collection with its reports",
    description:
      "Read it about once a second while a device is at work: `processing` says that there is something to attest. An operator's attribution of money pays an order under an intent id that no station ever collected: it is `intent_unknown` here, and `GET /api/backoffice/v1/intents/{intent_id}/timeline/` tells it.",
    who,
    replies: { 200: { description: "The intent.", schema: intentSchema } },
    errors: ["not_found", "intent_unknown"],
    handler: getIntent,
  }),
  route({
    method: "POST",
    path: `${intent}/attest/`,
    operation: "attestIntent",
    tag,
    summary: "Attest the payment",
    description:
      "Settles through the payment seam, once. Offered whatever the device reported, also a decline. One slip settles one order: on `attested_terminal` and `smart_pos` a reference that has already settled an order of the same filial is refused with `reference_already_used`, which names that order, until the cashier confirms it with `confirms_reference_already_used`. References are compared as a person reads them (letter case, spaces and invisible characters do not count); one of up to six characters, which terminals use again each day, only with those of the last 20 hours. When an earlier collection of the order has got a reason why its money may have moved since this one was created, attesting is refused with `money_may_have_moved`, which has `reason` and `earlier_intent_id`, until `confirms_money_may_have_moved` confirms it; `confirmation_needed` of the intent names it before.",
    who,
    headers,
    body: attestBodySchema,
    bodyOptional: true,
    replies: intentReply,
    errors: [
      "not_found",
      "intent_unknown",
      "intent_not_actionable",
      "evidence_required",
      "reference_required",
      "settlement_in_progress",
      "order_changed",
      "order_already_paid",
      "order_voided",
      "order_unknown",
      "money_already_used",
      "reference_already_used",
      "money_may_have_moved",
      "lease_required",
      "station_leased",
      "idempotency_key_reused",
    ],
    handler: attestIntent,
  }),
  route({
    method: "POST",
    path: `${intent}/cancel/`,
    operation: "cancelIntent",
    tag,
    summary: "Cancel the collection",
    description:
      "Cannot be undone. The order stays open and can be collected again, so make sure first that the guest has not paid: a report that comes later is refused. `money_may_have_moved` gives the reason at the moment of the cancellation, and a repetition says the same; read the collection for what was learned since, also from a late report.",
    who,
    headers,
    replies: intentReply,
    errors: [
      "not_found",
      "intent_unknown",
      "intent_not_actionable",
      "settlement_in_progress",
      "lease_required",
      "station_leased",
    ],
    handler: cancelIntent,
  }),
];
