/** The orders that an issue's payment can pay: a person chooses one of them for an attribution (attributions.ts). */
import { requirePermission } from "../bus/messages/caller.ts";
import * as bus from "../bus/messages/payable-orders.ts";
import type { Handler } from "../bus/operation.ts";
import { existing } from "../bus/refusals.ts";
import { getIssue } from "../issues/sql/issues.ts";
import { requireAccount } from "./attributions.ts";
import type { ProvidersDeps } from "./deps.ts";
import { requireKnownMoney } from "./issues.ts";
import * as sql from "./sql/payable-orders.ts";

/** Refuses with `permission_denied`, `not_found`, `conflict`. */
export const listPayableOrders: Handler<ProvidersDeps, typeof bus.listPayableOrders> = async (deps, request) => {
  const { caller, issueId } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const issue = existing(await getIssue(deps.database, { organizationId, issueId }));
  const { filialId, mode } = await requireAccount(deps, issue);
  requireKnownMoney(issue);
  const { amount_minor: amountMinor, currency } = issue;
  const money = { filialId, mode, amountMinor, currency };
  const limit = bus.LISTED_PAYABLE_ORDERS;
  const rows = await sql.listPayableOrders(deps.database, { organizationId, ...money, limit });
  return {
    orders: rows.map((row) => ({
      orderId: row.order_id,
      orderDisplayNumber: row.display_number,
      stationId: row.station_id,
      openedAtMs: row.opened_at.getTime(),
    })),
  };
};
