/**
 * Reads the contents of PostgreSQL page by page. The relay publishes them again on a bus that has lost its newest data
 * (design §3). Only the relay calls these operations of the registry and the settlement service. Hashes are SHA-256 in
 * lower-case hex.
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
/** The rows after this id, by id. A page may be shorter than `limit` although `hasMore` is true. */
const page = z.object({ sinceId: z.int().min(0), limit: id });

/** Stations with their current devices: first the newest revoked devices, then those that are not revoked. */
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

/** All credentials ever issued. A credential without an entry is revoked. */
export const announceCredentials = repeatable(
  "registry.announceCredentials",
  page,
  z.object({
    entries: z.array(z.object({ id, hash, entry: credentialEntrySchema.nullable() })),
    hasMore: z.boolean(),
  }),
);

/** All sessions that have not expired. A session without an entry has ended. */
export const announceSessions = repeatable(
  "registry.announceSessions",
  page,
  z.object({
    entries: z.array(z.object({ id, hash, entry: sessionEntrySchema.nullable() })),
    hasMore: z.boolean(),
  }),
);

/** All kill switches that were ever on, with their current state. */
export const announceSwitches = repeatable(
  "registry.announceSwitches",
  page,
  z.object({ entries: z.array(z.object({ id, entry: switchEntrySchema })), hasMore: z.boolean() }),
);

/**
 * For each station: the orders that are open in its log, with their current state in PostgreSQL, and last the newest
 * open order, even when the log lacks it; the transactions of the intents that are open in the log; and the collections
 * that the log has lost and that may have moved money. `version` and `sequence` are those of the log's newest commit,
 * zero when it has none.
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
