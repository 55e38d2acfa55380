/** A station as a cashier's screen shows it, made by the same functions as the answers of the endpoints. */
import { formatAmount } from "../../machines/currency.ts";
import { blockedReason } from "../../machines/standing.ts";
import type { ShownOrder, StationState } from "../../machines/station/state.ts";
import type { LiveState } from "../contract/live.ts";
import { readinessOf } from "../handlers/cashier/companion-readiness.ts";
import { intentWire } from "../handlers/cashier/intent-wire.ts";
import { leaseWire, lostLeaseWire } from "../handlers/cashier/lease-wire.ts";
import { type RoutesFacts, routesWire } from "../handlers/cashier/routes-wire.ts";
import { unclearCollections } from "../handlers/cashier/unclear-wire.ts";
import { toTimestamp } from "../http/shared-schemas.ts";

export interface LiveFacts extends RoutesFacts {
  /** Who looks. */
  readonly userId: number;
}

export function liveWire(state: StationState, facts: LiveFacts): LiveState {
  const { organizationId, stationId, status: stationStatus, intent, ended } = state;
  const { nowMs, switches } = facts;
  const [last] = ended;
  const intentFacts = { station: state, switches, nowMs };
  return {
    type: "state",
    station_id: stationId,
    name: state.name,
    status: stationStatus,
    blocked_reason: blockedReason({ organizationId, stationId, stationStatus }, switches),
    ...routesWire(state, facts),
    lease: leaseWire(state.lease, facts),
    lost_lease: lostLeaseWire(state.lostLease, facts),
    order: state.order === null ? null : shownOrderWire(state.order),
    active_intent: intent === null ? null : intentWire(intent, intentFacts),
    last_ended_intent: last === undefined ? null : intentWire(last, intentFacts),
    unclear_collections: [...unclearCollections(state)],
    server_time: toTimestamp(nowMs),
  };
}

function shownOrderWire(order: ShownOrder): NonNullable<LiveState["order"]> {
  return {
    order_id: order.orderId,
    order_display_number: order.orderDisplayNumber,
    status: order.status,
    revision: order.revision,
    total: formatAmount(order.amountMinor, order.currency),
    currency: order.currency,
  };
}

/** From this moment on the same state is shown differently: a lease or an intent lapses, a companion has not polled. */
export function liveValidUntilMs(state: StationState, { polledAtMs, nowMs }: LiveFacts): number {
  const { intent, lease, devices } = state;
  const moments = [
    lease?.expiresAtMs,
    intent?.expiresAtMs,
    ...devices.map((device) => readinessOf(state, device, polledAtMs(device.deviceId), nowMs).validUntilMs),
  ];
  return Math.min(...moments.flatMap((moment) => (moment === undefined || moment <= nowMs ? [] : [moment])));
}

/** What tells one state from another: not the moment of telling, nor when a companion polled that still is polling. */
export function liveIdentity(view: LiveState): string {
  return JSON.stringify(view, (name, value: unknown) =>
    name === "server_time" || name === "last_polled_at" ? undefined : value,
  );
}
