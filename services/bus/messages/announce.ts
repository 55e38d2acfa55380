/**
 * What PostgreSQL has, page by page: the relay publishes it again on a bus that has lost its newest data (design §3). Only
 * the relay calls these operations of the registry and the settlement service. Hashes are SHA-256 in lower-case hex.
 */
import { z } from "zod";
import { repeatable } from "../operation.ts";
import { credentialEntrySchema } from "./caller.ts";
import { switchEntrySchema } from "./kill-switches.ts";
import { sessionEntrySchema } from "./sessions.ts";
import {
  deviceDescriptionSchema,
  lostCollectionsSchema,
  orderSnapshotSchema,
  saleSchema,
  stationDescriptionSchema,
} from "./station-commands.ts";

const id = z.int().positive();
const hash = z.string().regex(/^[0-9a-f]{64}$/);
/** Rows after this id, by id. A page may be shorter than `limit` although `hasMore`. */
const page = z.object({ sinceId: z.int().min(0), limit: id });

/** Stations with their devices as they are now: the newest revoked ones first, then those that are not revoked. */
export const announceStations = repeatable(
  "registry.announceStations",
  page,
  z.object({
    stations: z.array(
      z.object({
        stationId: id,
        station: stationDescriptionSchema,
        devices: z.array(deviceDescriptionSchema),
      }),
    ),
    hasMore: z.boolean(),
  }),
);

/** All credentials ever issued; one without an entry is revoked. */
export const announceCredentials = repeatable(
  "registry.announceCredentials",
  page,
  z.object({
    entries: z.array(z.object({ id, hash, entry: credentialEntrySchema.nullable() })),
    hasMore: z.boolean(),
  }),
);

/** All sessions that have not expired; one without an entry was ended earlier. */
export const announceSessions = repeatable(
  "registry.announceSessions",
  page,
  z.object({
    entries: z.array(z.object({ id, hash, entry: sessionEntrySchema.nullable() })),
    hasMore: z.boolean(),
  }),
);

/** All kill switches that were ever on, whether they are on or off now. */
export const announceSwitches = repeatable(
  "registry.announceSwitches",
  page,
  z.object({ entries: z.array(z.object({ id, entry: switchEntrySchema })), hasMore: z.boolean() }),
);

/**
 * For each station: the orders that its log has as open, as they are in PostgreSQL now, and the newest open one last, also
 * when the log does not have it; the transactions of the intents that the log has not ended; and what the log has lost of
 * collections that may have moved money, by its newest commit (zeros where it has none).
 */
export const announceOrders = repeatable(
  "settlement.announceOrders",
  z.object({
    stations: z.array(
      z.object({
        stationId: id,
        version: z.int().min(0),
        sequence: z.int().min(0),
        orderIds: z.array(id),
        intentIds: z.array(id),
      }),
    ),
  }),
  z.object({
    stations: z.array(
      z.object({
        stationId: id,
        orders: z.array(orderSnapshotSchema),
        sales: z.array(saleSchema),
        lost: lostCollectionsSchema.nullable(),
      }),
    ),
  }),
);
