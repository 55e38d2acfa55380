/**
 * Every route of the service: method, path, who may call, schemas, handler. The server, the OpenAPI document and the
 * tests are made from this one table.
 *
 * Rows stand in the files imported below, by who calls; `cashier-routes.ts` shows one with everything, and
 * `handlers/cashier/open-order.ts` its handler. 400, 401, 403, 415 and 503 come by themselves; a row lists its own
 * refusals in `errors`.
 *
 * A command to a station: `ownStation(context)` (gateway/http/own-station.ts) refuses a foreign station, then
 * `context.deps.bus.command(stationId, {commandId: sessionCommandId(context, "intent_create", stationId), actor: cashierActor(context), command})`.
 */
import { backofficeDeviceRoutes } from "./api/backoffice/devices.ts";
import { enrollmentCodeRoutes } from "./api/backoffice/enrollment-codes.ts";
import { filialRoutes } from "./api/backoffice/filials.ts";
import { killSwitchRoutes } from "./api/backoffice/kill-switches.ts";
import { providerConfigRoutes } from "./api/backoffice/provider-configs.ts";
import { providerEventRoutes } from "./api/backoffice/provider-events.ts";
import { backofficeStationRoutes } from "./api/backoffice/stations.ts";
import { userRoutes } from "./api/backoffice/users.ts";
import { webhookDeliveryRoutes } from "./api/backoffice/webhook-deliveries.ts";
import { webhookEndpointRoutes } from "./api/backoffice/webhook-endpoints.ts";
import { healthRoutes } from "./api/meta/health.ts";
import { pageRoutes } from "./api/meta/pages.ts";
import { platformKillSwitchRoutes } from "./api/platform/kill-switch.ts";
import { organizationRoutes } from "./api/platform/organizations.ts";
import { callbackRoutes } from "./api/provider/callbacks.ts";
import { issueRoutes } from "./api/reconciliation/issues.ts";
import { consumerWebhookDeliveryRoutes } from "./api/robotics/webhook-deliveries.ts";
import { sessionRoutes } from "./api/sessions.ts";
import { backofficeOverviewRoutes } from "./backoffice-overview-routes.ts";
import { backofficeRoboticsRoutes } from "./backoffice-robotics-routes.ts";
import { backofficeRoutes } from "./backoffice-routes.ts";
import { cashierRoutes } from "./cashier-routes.ts";
import { deviceRoutes } from "./device-routes.ts";
import type { Route } from "./http/route.ts";
import { roboticsRoutes } from "./robotics-routes.ts";

export const routes: readonly Route[] = [
  ...deviceRoutes,
  ...sessionRoutes("backoffice", "organization.manage"),
  ...sessionRoutes("cashier", "payments.collect"),
  ...sessionRoutes("reconciliation", "reconciliation.manage"),
  ...cashierRoutes,
  ...filialRoutes,
  ...backofficeStationRoutes,
  ...backofficeRoutes,
  ...backofficeDeviceRoutes,
  ...enrollmentCodeRoutes,
  ...userRoutes,
  ...backofficeOverviewRoutes,
  ...backofficeRoboticsRoutes,
  ...roboticsRoutes,
  ...webhookEndpointRoutes,
  ...webhookDeliveryRoutes,
  ...consumerWebhookDeliveryRoutes,
  ...callbackRoutes,
  ...providerConfigRoutes,
  ...providerEventRoutes,
  ...issueRoutes,
  ...killSwitchRoutes,
  ...platformKillSwitchRoutes,
  ...organizationRoutes,
  ...healthRoutes,
  ...pageRoutes,
];
