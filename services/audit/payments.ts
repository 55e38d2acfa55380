/** The payments of an organization, page by page, and counts over them. */
import { UNKNOWN_TIME_ZONE } from "../bus/field-errors.ts";
import { requirePermission } from "../bus/messages/caller.ts";
import type * as messages from "../bus/messages/payments.ts";
import type { ReplyOf, RequestOf } from "../bus/operation.ts";
import { firstPage } from "../bus/page.ts";
import { RefusedError } from "../bus/refusals.ts";
import { canonicalTimeZone } from "../bus/time-zones.ts";
import type { AuditDeps } from "./deps.ts";
import { AUDIT_LIMITS } from "./limits.ts";
import * as sql from "./sql/payments.ts";

const CASHIERS = ["payments.collect"] as const;

/**
 * Refuses with `permission_denied`: a cashier reads one station at a time. A filter with an id of another organization
 * finds nothing.
 */
export async function listPayments(
  { database }: Pick<AuditDeps, "database">,
  request: RequestOf<typeof messages.listPayments>,
): Promise<ReplyOf<typeof messages.listPayments>> {
  const { caller, beforeId, limit, ...filter } = request;
  const { organizationId } = requirePermission(
    caller,
    "organization.manage",
    ...(filter.stationId === undefined ? [] : CASHIERS),
  );
  const found = await sql.listPayments(database, { ...filter, organizationId, beforeId, limit: limit + 1 });
  const { page, hasMore } = firstPage(found, limit);
  return { payments: page, hasMore };
}

/** Refuses with `permission_denied`, or with `invalid_request` for an unknown time zone. */
export async function getOverview(
  { database }: Pick<AuditDeps, "database">,
  { caller, day, timeZone: wanted, sandbox }: RequestOf<typeof messages.getOverview>,
): Promise<ReplyOf<typeof messages.getOverview>> {
  const { organizationId } = requirePermission(caller, "organization.manage");
  const timeZone = canonicalTimeZone(wanted);
  if (timeZone === undefined) throw new RefusedError({ code: "invalid_request", errors: [UNKNOWN_TIME_ZONE] });
  const [counts, groups] = await Promise.all([
    sql.countLive(database, { organizationId, most: AUDIT_LIMITS.liveCount }),
    sql.selectHours(database, { organizationId, day, timeZone, sandbox }),
  ]);
  const { hours = [], routes = [] } = Object.groupBy(groups, ({ hour }) => (hour === null ? "routes" : "hours"));
  return {
    ...counts,
    hours: hours as ReplyOf<typeof messages.getOverview>["hours"],
    routes: routes.map(({ route, medianMs }) => ({ route, medianMs })) as ReplyOf<
      typeof messages.getOverview
    >["routes"],
  };
}
