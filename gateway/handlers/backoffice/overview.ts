/** The day's work of the owner's organization: orders, and of each station who drives it and what it collects. */
import type { z } from "zod";
import type { StationState } from "../../../machines/station/state.ts";
import { getOrder, listOrders } from "../../../services/bus/messages/orders.ts";
import { listStations } from "../../../services/bus/messages/stations.ts";
import type {
  activeIntentsSchema,
  leasesSchema,
  ownOrdersQuerySchema,
  stationPageQuerySchema,
} from "../../contract/overview.ts";
import { ok, type SessionContext, type SessionHandler } from "../../http/handler-context.ts";
import { requireOwnStation } from "../../http/own-station.ts";
import { intentWire } from "../cashier/intent-wire.ts";
import { leaseWire } from "../cashier/lease-wire.ts";
import { orderWire } from "../cashier/order-wire.ts";

/** A foreign station is `not_found`. */
export const listOwnOrders: SessionHandler<undefined, z.infer<typeof ownOrdersQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { station_id: stationId, status, before_id: beforeId, limit } = query;
  if (stationId !== undefined) await requireOwnStation(context, stationId);
  const { orders, hasMore } = await deps.bus.call(listOrders, { caller, stationId, status, beforeId, limit });
  return ok({ orders: orders.map((order) => orderWire(order, deps.station(order.stationId))), has_more: hasMore });
};

export const getOwnOrder: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { order } = await deps.bus.call(getOrder, { caller, orderId: context.id("order_id") });
  return ok(orderWire(order, deps.station(order.stationId)));
};

type StationPageContext = SessionContext<undefined, z.infer<typeof stationPageQuerySchema>>;

export const listOwnLeases: SessionHandler<undefined, z.infer<typeof stationPageQuerySchema>> = async (context) => {
  const { states, ...page } = await stationPage(context);
  const reader = { userId: context.caller.userId, nowMs: context.deps.nowMs() };
  const leases = states.flatMap((state) => {
    const lease = leaseWire(state.lease, reader);
    return lease === null ? [] : [{ ...nameOf(state), lease }];
  });
  return ok({ leases, ...page } satisfies z.infer<typeof leasesSchema>);
};

export const listOwnActiveIntents: SessionHandler<undefined, z.infer<typeof stationPageQuerySchema>> = async (
  context,
) => {
  const { states, ...page } = await stationPage(context);
  const { deps } = context;
  const facts = { switches: deps.switches(), nowMs: deps.nowMs() };
  const active_intents = states.flatMap((state) => {
    const { intent } = state;
    return intent === null ? [] : [{ ...nameOf(state), intent: intentWire(intent, { station: state, ...facts }) }];
  });
  return ok({ active_intents, ...page } satisfies z.infer<typeof activeIntentsSchema>);
};

const nameOf = ({ stationId, name }: StationState) => ({ station_id: stationId, station_name: name });

/** The next stations of the organization that this gateway's replica has. */
async function stationPage({ caller, deps, query }: StationPageContext) {
  const { filial_id: filialId, since_id: sinceId, limit } = query;
  const { stations, hasMore } = await deps.bus.call(listStations, { caller, filialId, sinceId, limit });
  return {
    states: stations.flatMap(({ stationId }) => deps.station(stationId) ?? []),
    has_more: hasMore,
    through_id: stations.at(-1)?.stationId ?? sinceId,
  };
}
