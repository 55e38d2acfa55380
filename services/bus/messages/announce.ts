/**
 * What the registry and the settlement service know, page by page, so that the relay can tell it to a bus that has lost
 * its newest data (design §3). Asked by the relay only. Hashes are SHA-256 in lower-case hex.
 */
import { z } from "zod";
import { defineOperation } from "../operation.ts";
import { credentialEntrySchema } from "./caller.ts";
import { switchEntrySchema } from "./kill-switches.ts";
import { sessionEntrySchema } from "./sessions.ts";
import {
  deviceDescriptionSchema,
  orderSnapshotSchema,
  saleSchema,
  stationDescriptionSchema,
} from "./station-commands.ts";

const id = z.int().positive();
const hash = z.string().regex(/^[0-9a-f]{64}$/);
/** Things after this id, in the order of their ids. A page may be shorter than `limit` although there are more. */
const page = z.object({ sinceId: z.int().min(0), limit: id });

/** Stations with their devices as they are now: the newest revoked ones first, then those that are not revoked. */
export const announceStations = defineOperation(
  "registry.announceStations",
  "repeatable",
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

/** Every credential that there ever was; one without an entry is revoked and opens nothing. */
export const announceCredentials = defineOperation(
  "registry.announceCredentials",
  "repeatable",
  page,
  z.object({
    entries: z.array(z.object({ id, hash, entry: credentialEntrySchema.nullable() })),
    hasMore: z.boolean(),
  }),
);

/** Every session that has not expired; one without an entry was ended before its time. */
export const announceSessions = defineOperation(
  "registry.announceSessions",
  "repeatable",
  page,
  z.object({
    entries: z.array(z.object({ id, hash, entry: sessionEntrySchema.nullable() })),
    hasMore: z.boolean(),
  }),
);

/** Every kill switch that was ever thrown, whether it is on or off. */
export const announceSwitches = defineOperation(
  "registry.announceSwitches",
  "repeatable",
  page,
  z.object({ entries: z.array(z.object({ id, entry: switchEntrySchema })), hasMore: z.boolean() }),
);

/**
 * The truth about what stations believe: the orders that each takes for open, as they are now, with the newest open one
 * last, also when the station does not know it; and the transactions of the intents that it has not ended.
 */
export const announceOrders = defineOperation(
  "settlement.announceOrders",
  "repeatable",
  z.object({
    stations: z.array(z.object({ stationId: id, orderIds: z.array(id), intentIds: z.array(id) })),
  }),
  z.object({
    stations: z.array(
      z.object({
        stationId: id,
        orders: z.array(orderSnapshotSchema),
        sales: z.array(saleSchema),
      }),
    ),
  }),
);
