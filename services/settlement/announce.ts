/** What the settlement service knows, for a bus that has lost its newest data. Served on the bus only, for the relay. */
import type { announceOrders } from "../bus/messages/announce.ts";
import type { ReplyOf, RequestOf } from "../bus/operation.ts";
import type { SettlementDeps } from "./deps.ts";
import { selectBelievedOrders, selectSales } from "./sql/announced.ts";

/** The truth about each station's orders and about the intents that it has not ended. */
export async function announce(
  { database }: Pick<SettlementDeps, "database">,
  { stations }: RequestOf<typeof announceOrders>,
): Promise<ReplyOf<typeof announceOrders>> {
  const stationIds = stations.map(({ stationId }) => stationId);
  const [orders, sales] = await Promise.all([
    selectBelievedOrders(database, { stationIds, orderIds: stations.flatMap(({ orderIds }) => orderIds) }),
    selectSales(database, { stationIds, intentIds: stations.flatMap(({ intentIds }) => intentIds) }),
  ]);
  const ordersOf = Map.groupBy(orders, ({ stationId }) => stationId);
  const salesOf = Map.groupBy(sales, ({ stationId }) => stationId);
  return {
    stations: stationIds.map((stationId) => ({
      stationId,
      orders: (ordersOf.get(stationId) ?? []).map(({ order }) => order),
      sales: (salesOf.get(stationId) ?? []).map(({ sale }) => sale),
    })),
  };
}
