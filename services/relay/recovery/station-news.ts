/** What a station has to be told so that it knows what PostgreSQL knows. Pure. */
import type { KnownOrder, OrderSnapshot, StationState } from "../../../machines/station/state.ts";
import type { announceOrders, announceStations } from "../../bus/messages/announce.ts";
import type { StationRequest } from "../../bus/messages/station-commands.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";

export type AnnouncedStation = ReplyOf<typeof announceStations>["stations"][number];
export type Belief = RequestOf<typeof announceOrders>["stations"][number];
export type OrderTruth = ReplyOf<typeof announceOrders>["stations"][number];
/** A command and who gives it. */
export type News = Pick<StationRequest, "actor" | "command">;

const REGISTRY = { kind: "registry", id: 0 } as const;
const SETTLEMENT = { kind: "settlement", id: 0 } as const;

/** The orders that the station takes for open, and the collection that it takes for under way. */
export function beliefOf(stationId: number, state: StationState | null): Belief {
  if (state === null) return { stationId, orderIds: [], intentIds: [] };
  const { knownOrders, order, intent } = state;
  const open = knownOrders.filter(({ status }) => status === "open").map(({ orderId }) => orderId);
  const shown = order === null ? [] : [order.orderId];
  const collected = intent === null ? [] : [intent.orderId];
  return {
    stationId,
    orderIds: [...new Set([...open, ...shown, ...collected])],
    intentIds: intent === null ? [] : [intent.intentId],
  };
}

/** Only what is news, in the order in which it must be told; none for a station that knows everything. */
export function newsFor(state: StationState | null, announced: AnnouncedStation, truth: OrderTruth): News[] {
  const { stationId, station } = announced;
  const news: News[] = [];
  if (state === null || state.revision < station.revision) {
    news.push({ actor: REGISTRY, command: { type: "station_put", stationId, station } });
  }
  for (const device of announced.devices) {
    const known = state?.devices.find((other) => other.deviceId === device.deviceId);
    const isGone = device.status === "revoked" && (state === null || state.revokedDevices.includes(device.deviceId));
    if (isGone || (known !== undefined && known.revision >= device.revision)) continue;
    news.push({ actor: REGISTRY, command: { type: "device_put", device } });
  }
  // The payment first: while it is under way, it is what the display shows.
  for (const sale of truth.sales) news.push({ actor: SETTLEMENT, command: { type: "settlement_succeeded", ...sale } });
  for (const order of truth.orders) {
    if (isKnown(state?.knownOrders ?? [], order)) continue;
    news.push({ actor: SETTLEMENT, command: { type: "order_put", order } });
  }
  return news;
}

function isKnown(knownOrders: readonly KnownOrder[], { orderId, revision, status }: OrderSnapshot): boolean {
  const known = knownOrders.find((other) => other.orderId === orderId);
  return known !== undefined && known.status === status && (status !== "open" || known.revision >= revision);
}
