/** Open orders of one amount, which belong to the settlement service. */
import type { Queryable } from "../../db/pool.ts";
import type { OrderPlace } from "./issues.ts";

interface PayableOrderRow {
  readonly order_id: number;
  readonly display_number: number;
  readonly station_id: number;
  readonly opened_at: Date;
}

/** The newest first. `filialId` null: of all filials. */
export async function listPayableOrders(
  sql: Queryable,
  wanted: {
    readonly organizationId: number;
    readonly filialId: number | null;
    readonly mode: OrderPlace["mode"];
    readonly amountMinor: string;
    readonly currency: string;
    readonly limit: number;
  },
): Promise<readonly PayableOrderRow[]> {
  const { organizationId, filialId, mode, amountMinor, currency, limit } = wanted;
  return await sql<PayableOrderRow[]>`
    select o.order_id, o.display_number, o.station_id, o.opened_at from orders o join stations s using (station_id)
    where o.organization_id = ${organizationId} and o.status = 'open' and o.currency = ${currency}
      and o.total_minor = ${amountMinor}::bigint and s.sandbox = ${mode === "test"}
      and (${filialId}::bigint is null or s.filial_id = ${filialId}::bigint)
    order by o.order_id desc limit ${limit}`;
}
