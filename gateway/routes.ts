/**
 * Every route of the service: method, path, who may call, schemas, handler. The server, the OpenAPI document and the
 * tests are made from this one table.
 *
 * A row and its handler:
 *
 *   route({
 *     method: "POST",
 *     path: "/api/cashier/v1/stations/{station_id}/orders/",
 *     operationId: "cashier_order_open",
 *     tag: "cashier",
 *     summary: "Open an order",
 *     who: session("payments.collect"),
 *     body: openOrderBodySchema,                       // z.strictObject in gateway/contract/cashier.ts
 *     headers: idempotencyHeaderSchema,                // documented; read with context.header("idempotency-key")
 *     replies: { 201: { description: "The order.", schema: orderReplySchema } },
 *     errors: ["not_found", "idempotency_key_reused"], // its own refusals; 400, 401, 403, 415, 503 … come by themselves
 *     handler: openOrder,                              // gateway/handlers/cashier/open-order.ts
 *   }),
 *
 *   export const openOrder: SessionHandler<z.infer<typeof openOrderBodySchema>> = async (context) => {
 *     const { order } = await context.deps.bus.call(settlement.openOrder, {
 *       caller: context.caller,
 *       stationId: context.id("station_id"),
 *       lines: context.body.lines.map(toLine),
 *     });                                              // RefusedError and UnavailableError pass through to the server
 *     return created({ order: orderView(order) });     // `call` has waited for the reply's barrier
 *   };
 *
 * A command to a station: `ownStation(context)` (gateway/handlers/own-station.ts) refuses a foreign station, then
 * `context.deps.bus.command(stationId, {commandId: sessionCommandId(context, "intent_create", stationId), actor: cashierActor(context), command})`.
 */
import { backofficeDeviceRoutes } from "./backoffice-device-routes.ts";
import { backofficeRoutes } from "./backoffice-routes.ts";
import { cashierRoutes } from "./cashier-routes.ts";
import { deviceRoutes } from "./device-routes.ts";
import type { Route } from "./route.ts";
import { serviceRoutes } from "./service-routes.ts";
import { sessionRoutes } from "./session-routes.ts";

export const routes: readonly Route[] = [
  // --- device (contract) ---
  ...deviceRoutes,
  // --- session ---
  ...sessionRoutes("backoffice", "organization.manage"),
  ...sessionRoutes("cashier", "payments.collect"),
  // --- cashier: rows of the cashier's API go below this line ---
  ...cashierRoutes,
  // --- cashier: end ---
  // --- back office: rows of the owner's API go below this line ---
  ...backofficeRoutes,
  ...backofficeDeviceRoutes,
  // --- back office: end ---
  // --- service ---
  ...serviceRoutes,
];
