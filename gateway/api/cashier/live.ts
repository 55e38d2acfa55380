/** The live view of one station, sent over a WebSocket on each change (`gateway/live/`) or read once. */
import { z } from "zod";
import { formatAmount } from "../../../machines/currency.ts";
import { blockedReason } from "../../../machines/standing.ts";
import type { ShownOrder, StationState } from "../../../machines/station/state.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { ownStation } from "../../http/own-station.ts";
import { cashierRoute } from "../../http/route.ts";
import { amountSchema, currencySchema, idSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { blockedReasonSchema } from "../backoffice/devices.ts";
import { stationStatusSchema } from "../backoffice/stations.ts";
import { intentJson, intentSchema } from "./intent-json.ts";
import { leaseHolderJson, leaseHolderSchema, lostLeaseJson, lostLeaseSchema } from "./leases.ts";
import { orderStatusSchema } from "./orders.ts";
import { companionSchema, type RoutesFacts, readinessOf, routeOfferSchema, routesJson } from "./routes.ts";
import { UNCLEAR_DESCRIPTION, unclearCollectionSchema, unclearCollections } from "./unclear-collections.ts";

/** The open order that the station shows. `cashier_get_order` has its lines. */
const shownOrderSchema = z
  .object({
    order_id: idSchema,
    order_display_number: idSchema,
    status: orderStatusSchema,
    revision: idSchema,
    total: amountSchema,
    currency: currencySchema,
  })
  .meta({ id: "ShownOrder" });

export const liveStateSchema = z
  .object({
    type: z.literal("state"),
    station_id: idSchema,
    name: z.string(),
    currency: currencySchema,
    status: stationStatusSchema,
    blocked_reason: blockedReasonSchema.meta({ description: "Why the station is blocked now; empty when it is not." }),
    routes: z.array(routeOfferSchema),
    companions: z.array(companionSchema),
    lease: leaseHolderSchema.nullable(),
    lost_lease: lostLeaseSchema.nullable().meta({
      description:
        "The last lease that another person ended; `mine`: the reader held it and was driving the station until then. Null once the free station was taken again.",
    }),
    order: shownOrderSchema.nullable(),
    active_intent: intentSchema.nullable(),
    last_ended_intent: intentSchema
      .nullable()
      .meta({ description: "The collection that ended last, with its result." }),
    unclear_collections: z.array(unclearCollectionSchema).meta({ description: UNCLEAR_DESCRIPTION }),
    server_time: timestampSchema,
  })
  .meta({ id: "LiveState" });

/**
 * Sent when the gateway has lost its feed, or the bus has lost the station's log. Until the next state, the last one is not
 * reliable.
 */
const liveStaleSchema = z.object({ type: z.literal("stale"), server_time: timestampSchema }).meta({ id: "LiveStale" });

/** Sent after three seconds without another message: the last state is current. A network that drops packets reports nothing. */
const liveCurrentSchema = z
  .object({ type: z.literal("current"), server_time: timestampSchema })
  .meta({ id: "LiveCurrent" });

export const liveMessageSchema = z
  .discriminatedUnion("type", [liveStateSchema, liveStaleSchema, liveCurrentSchema])
  .meta({ id: "LiveMessage" });
type LiveState = z.infer<typeof liveStateSchema>;

const LIVE_DESCRIPTION = [
  "As a WebSocket, the path sends one JSON message at once and one on each change. `state` has everything that a cashier's screen shows, so no message depends on an earlier one. `stale` comes when the gateway has lost its feed, or when the bus has lost the station's log: do not rely on the last `state` until the next one. `current` comes when nothing else was sent for three seconds: the last `state` still holds. A client that gets no message for eight seconds has lost its network, although its socket may seem open: connect again. A client that reads slowly gets the newest state and skips the ones between. It must answer pings, as browsers and libraries do by themselves, and it sends no messages.",
  "The session is checked as for any request: a bearer token, or the cookie from the service's own pages. The socket ends with 4401 when the session ends, with 4404 when the registry has no such station, with 1008 when the client sends a message or answers no ping for 24 s, and with 1001 when the gateway stops. After 1001 connect again. One session has eight sockets at most.",
  "A plain GET answers the newest `state` once.",
].join("\n\n");

interface LiveFacts extends RoutesFacts {
  /** The user who reads the view: `mine` of a lease refers to this user. */
  readonly userId: number;
}

export function liveJson(state: StationState, facts: LiveFacts): LiveState {
  const { organizationId, stationId, status: stationStatus, intent, ended } = state;
  const { nowMs, switches } = facts;
  const [last] = ended;
  const intentFacts = { station: state, switches, nowMs };
  return {
    type: "state",
    station_id: stationId,
    name: state.name,
    currency: state.currency,
    status: stationStatus,
    blocked_reason: blockedReason({ organizationId, stationId, stationStatus }, switches),
    ...routesJson(state, facts),
    lease: leaseHolderJson(state.lease, facts),
    lost_lease: lostLeaseJson(state.lostLease, facts),
    order: state.order === null ? null : shownOrderJson(state.order),
    active_intent: intent === null ? null : intentJson(intent, intentFacts),
    last_ended_intent: last === undefined ? null : intentJson(last, intentFacts),
    unclear_collections: [...unclearCollections(state)],
    server_time: toTimestamp(nowMs),
  };
}

function shownOrderJson(order: ShownOrder): NonNullable<LiveState["order"]> {
  return {
    order_id: order.orderId,
    order_display_number: order.orderDisplayNumber,
    status: order.status,
    revision: order.revision,
    total: formatAmount(order.amountMinor, order.currency),
    currency: order.currency,
  };
}

/** When the view changes next without a commit: a lease or an intent ends, or a companion counts as not polling. */
export function liveValidUntilMs(state: StationState, { polledAtMs, nowMs }: LiveFacts): number {
  const { intent, lease, devices } = state;
  const moments = [
    lease?.expiresAtMs,
    intent?.expiresAtMs,
    ...devices.map((device) => readinessOf(state, device, polledAtMs(device.deviceId), nowMs).validUntilMs),
  ];
  return Math.min(...moments.flatMap((moment) => (moment === undefined || moment <= nowMs ? [] : [moment])));
}

/** Equal for two views with the same content. The time of sending and of a companion's last poll do not count. */
export function liveIdentity(view: LiveState): string {
  return JSON.stringify(view, (name, value: unknown) =>
    name === "server_time" || name === "last_polled_at" ? undefined : value,
  );
}

const followLive: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const state = await ownStation(context);
  const { polledAtMs } = deps;
  return ok(liveJson(state, { switches: deps.switches(), polledAtMs, nowMs: deps.nowMs(), userId: caller.userId }));
};

export const liveRoutes = [
  cashierRoute({
    method: "GET",
    path: "/api/cashier/v1/stations/{station_id}/live/",
    operation: "followLive",
    summary: "Follow a station",
    description: LIVE_DESCRIPTION,
    upgrades: true,
    replies: {
      200: { description: "A plain GET: the newest state, once, as `state`.", schema: liveMessageSchema },
    },
    errors: ["not_found", "csrf_refused", "throttled"],
    handler: followLive,
  }),
];
