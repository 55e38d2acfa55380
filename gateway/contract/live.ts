/** What a cashier's screen shows of one station, pushed over a WebSocket on each change (design §5). */
import { z } from "zod";
import { blockedReasonSchema } from "../api/backoffice/devices.ts";
import { stationStatusSchema } from "../api/backoffice/stations.ts";
import { orderStatusSchema } from "../http/enums.ts";
import { amountSchema, currencySchema, idSchema, timestampSchema } from "../http/shared-schemas.ts";
import { companionSchema, leaseHolderSchema, lostLeaseSchema, routeOfferSchema } from "./cashier.ts";
import { intentSchema, UNCLEAR_DESCRIPTION, unclearCollectionSchema } from "./intent.ts";

/** The open order that the station shows; its lines are at `cashier_get_order`. */
export const shownOrderSchema = z
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
    status: stationStatusSchema,
    blocked_reason: blockedReasonSchema.meta({ description: "Why the station is blocked now; empty when it is not." }),
    routes: z.array(routeOfferSchema),
    companions: z.array(companionSchema),
    lease: leaseHolderSchema.nullable(),
    lost_lease: lostLeaseSchema.nullable().meta({
      description:
        "The last lease that another person ended; `mine` says that it is the reader's, who was driving the station until then. Null once the free station was taken again.",
    }),
    order: shownOrderSchema.nullable(),
    active_intent: intentSchema.nullable(),
    last_ended_intent: intentSchema.nullable().meta({ description: "What became of the collection before." }),
    unclear_collections: z.array(unclearCollectionSchema).meta({ description: UNCLEAR_DESCRIPTION }),
    server_time: timestampSchema,
  })
  .meta({ id: "LiveState" });

/** The gateway has lost its feed, or the bus the station's log: what was sent before is not to be believed until the next `state`. */
export const liveStaleSchema = z
  .object({ type: z.literal("stale"), server_time: timestampSchema })
  .meta({ id: "LiveStale" });

export const liveMessageSchema = z
  .discriminatedUnion("type", [liveStateSchema, liveStaleSchema])
  .meta({ id: "LiveMessage" });
export type LiveState = z.infer<typeof liveStateSchema>;

export const LIVE_DESCRIPTION = [
  "Upgraded to a WebSocket, the path sends one JSON message at once and one on each change: `state` with all that a cashier's screen shows, so that no message depends on an earlier one, and `stale` when the gateway has lost its feed, or the bus the station's log, and the last `state` is not to be believed until the next one. A client that reads slowly gets the newest state and skips the ones between; it must answer pings, as browsers and libraries do by themselves, and sends nothing itself.",
  "The session is checked as for any request: a bearer token, or the cookie from the service's own pages. It is watched: the socket ends with 4401 when the session does, with 4404 when the registry says that there is no such station, with 1008 when the client sends a message or answers no ping for 24 s, and with 1001 when the gateway stops; then connect again. One session has eight sockets at most.",
  "A plain GET answers the newest `state` once.",
].join("\n\n");
