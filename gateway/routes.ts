/**
 * Every route of the service: method, path, who may call, schemas, handler. The server, the OpenAPI document and the tests use
 * this one table. Each resource has its rows in a file that is imported below; `api/cashier/orders.ts` is a complete example.
 * A row lists only the errors of its operation in `errors`: the document adds those of the caller, the body and faults.
 *
 * A command to a station: `ownStation(context)` (gateway/http/own-station.ts) refuses a station of another organization, then
 * `context.deps.bus.command(stationId, {commandId: sessionCommandId(context, "intent_create", stationId), actor: cashierActor(context), command})`.
 */

import { attributionLimitRoutes } from "./api/backoffice/attribution-limits.ts";
import { catalogueItemRoutes } from "./api/backoffice/catalogue-items.ts";
import { certificationArtifactRoutes } from "./api/backoffice/certification-artifacts.ts";
import { conformanceRunRoutes } from "./api/backoffice/conformance-runs.ts";
import { backofficeDeviceRoutes } from "./api/backoffice/devices.ts";
import { enrollmentCodeRoutes } from "./api/backoffice/enrollment-codes.ts";
import { eventRoutes } from "./api/backoffice/events.ts";
import { filialRoboticsRoutes } from "./api/backoffice/filial-robotics.ts";
import { filialRoutes } from "./api/backoffice/filials.ts";
import { backofficeIntentRoutes } from "./api/backoffice/intents.ts";
import { killSwitchRoutes } from "./api/backoffice/kill-switches.ts";
import { backofficeLeaseRoutes } from "./api/backoffice/leases.ts";
import { backofficeOrderRoutes } from "./api/backoffice/orders.ts";
import { overviewRoutes } from "./api/backoffice/overview.ts";
import { paymentRoutes } from "./api/backoffice/payments.ts";
import { providerConfigRoutes } from "./api/backoffice/provider-configs.ts";
import { providerEventRoutes } from "./api/backoffice/provider-events.ts";
import { roboticsConsumerRoutes } from "./api/backoffice/robotics-consumers.ts";
import { sandboxRoutes } from "./api/backoffice/sandboxes.ts";
import { servingTaskRoutes } from "./api/backoffice/serving-tasks.ts";
import { backofficeStationRoutes } from "./api/backoffice/stations.ts";
import { timelineRoutes } from "./api/backoffice/timelines.ts";
import { userRoutes } from "./api/backoffice/users.ts";
import { webhookDeliveryRoutes } from "./api/backoffice/webhook-deliveries.ts";
import { webhookEndpointRoutes } from "./api/backoffice/webhook-endpoints.ts";
import { stationItemRoutes } from "./api/cashier/catalogue-items.ts";
import { intentRoutes } from "./api/cashier/intents.ts";
import { leaseRoutes } from "./api/cashier/leases.ts";
import { liveRoutes } from "./api/cashier/live.ts";
import { orderRoutes } from "./api/cashier/orders.ts";
import { stationPaymentRoutes } from "./api/cashier/payments.ts";
import { routeOfferRoutes } from "./api/cashier/routes.ts";
import { stationRoutes } from "./api/cashier/stations.ts";
import { assignmentRoutes } from "./api/device/assignment.ts";
import { displayRoutes } from "./api/device/display.ts";
import { enrollmentRoutes } from "./api/device/enrollment.ts";
import { selfRoutes } from "./api/device/self.ts";
import { loginLinkRoutes } from "./api/login-links.ts";
import { certificationLogRoutes } from "./api/meta/certification-log.ts";
import { healthRoutes } from "./api/meta/health.ts";
import { pageRoutes } from "./api/meta/pages.ts";
import { webPageRoutes } from "./api/meta/web-pages.ts";
import { platformKillSwitchRoutes } from "./api/platform/kill-switch.ts";
import { organizationRoutes } from "./api/platform/organizations.ts";
import { callbackRoutes } from "./api/provider/callbacks.ts";
import { statementAccountRoutes } from "./api/reconciliation/accounts.ts";
import { attributionProposalRoutes } from "./api/reconciliation/attribution-proposals.ts";
import { closingRowRoutes } from "./api/reconciliation/closing-rows.ts";
import { closingRoutes } from "./api/reconciliation/closings.ts";
import { dayReportRoutes } from "./api/reconciliation/day-report.ts";
import { exportRoutes } from "./api/reconciliation/exports.ts";
import { importDecisionRoutes } from "./api/reconciliation/import-decisions.ts";
import { statementImportRoutes } from "./api/reconciliation/imports.ts";
import { issueOverviewRoutes } from "./api/reconciliation/issue-overview.ts";
import { issueRoutes } from "./api/reconciliation/issues.ts";
import { statementLineRoutes } from "./api/reconciliation/lines.ts";
import { statementMappingRoutes } from "./api/reconciliation/mappings.ts";
import { matchRoutes } from "./api/reconciliation/matches.ts";
import { payableOrderRoutes } from "./api/reconciliation/payable-orders.ts";
import { periodRoutes } from "./api/reconciliation/periods.ts";
import { placeRoutes } from "./api/reconciliation/places.ts";
import { runRoutes } from "./api/reconciliation/runs.ts";
import { consumerTaskRoutes } from "./api/robotics/serving-tasks.ts";
import { consumerWebhookDeliveryRoutes } from "./api/robotics/webhook-deliveries.ts";
import { sessionRoutes } from "./api/sessions.ts";
import type { Route } from "./http/route.ts";

const table = [
  ...enrollmentRoutes,
  ...selfRoutes,
  ...assignmentRoutes,
  ...displayRoutes,
  ...sessionRoutes("backoffice", "organization.manage"),
  ...sessionRoutes("cashier", "payments.collect"),
  ...sessionRoutes("reconciliation", "reconciliation.manage"),
  ...loginLinkRoutes,
  ...stationRoutes,
  ...leaseRoutes,
  ...routeOfferRoutes,
  ...liveRoutes,
  ...stationItemRoutes,
  ...orderRoutes,
  ...intentRoutes,
  ...stationPaymentRoutes,
  ...filialRoutes,
  ...catalogueItemRoutes,
  ...sandboxRoutes,
  ...conformanceRunRoutes,
  ...certificationArtifactRoutes,
  ...backofficeStationRoutes,
  ...eventRoutes,
  ...overviewRoutes,
  ...paymentRoutes,
  ...timelineRoutes,
  ...backofficeDeviceRoutes,
  ...enrollmentCodeRoutes,
  ...userRoutes,
  ...backofficeLeaseRoutes,
  ...backofficeOrderRoutes,
  ...backofficeIntentRoutes,
  ...roboticsConsumerRoutes,
  ...filialRoboticsRoutes,
  ...servingTaskRoutes,
  ...consumerTaskRoutes,
  ...webhookEndpointRoutes,
  ...webhookDeliveryRoutes,
  ...consumerWebhookDeliveryRoutes,
  ...callbackRoutes,
  ...providerConfigRoutes,
  ...providerEventRoutes,
  ...attributionLimitRoutes,
  ...issueRoutes,
  ...issueOverviewRoutes,
  ...payableOrderRoutes,
  ...attributionProposalRoutes,
  ...runRoutes,
  ...matchRoutes,
  ...placeRoutes,
  ...statementAccountRoutes,
  ...statementMappingRoutes,
  ...statementImportRoutes,
  ...importDecisionRoutes,
  ...statementLineRoutes,
  ...periodRoutes,
  ...closingRoutes,
  ...closingRowRoutes,
  ...dayReportRoutes,
  ...exportRoutes,
  ...killSwitchRoutes,
  ...platformKillSwitchRoutes,
  ...organizationRoutes,
  ...certificationLogRoutes,
  ...healthRoutes,
  ...pageRoutes,
  ...webPageRoutes,
  // As a tuple, the table keeps the type of each row.
] as const;

export const routes: readonly Route[] = table;

/** Any row with its types: the pages call the rows by their paths (`gateway/web/shared/operations.ts`). */
export type TypedRoute = (typeof table)[number];
