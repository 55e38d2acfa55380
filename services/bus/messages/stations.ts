/**
 * Stations, as their owner set them up. Reads need `organization.manage` or `payments.collect`; changes need
 * `organization.manage`. Another organization's id is `not_found`.
 */
import { z } from "zod";
import { STATION_STATUSES } from "../../../machines/standing.ts";
import { once, repeatable } from "../operation.ts";
import { pageAfter } from "../page.ts";
import { barrierSchema, callerSchema as caller } from "./caller.ts";
import { creationSchema as creation } from "./creation.ts";
import { currencySchema } from "./currency.ts";
import { nameSchema as name } from "./name.ts";
import { stationDescriptionSchema } from "./station-commands.ts";

const id = z.int().positive();

/** The fields that the station's actor gets, and the fields that only the registry has. */
export const stationSchema = stationDescriptionSchema.omit({ organizationId: true, revision: true }).extend({
  stationId: id,
  sandbox: z.boolean(),
  createdAtMs: z.number(),
});
export type Station = z.infer<typeof stationSchema>;

const stationReply = z.object({ station: stationSchema, barrier: barrierSchema });
export const listStations = repeatable(
  "registry.listStations",
  z.object({ caller, filialId: id.optional(), status: z.enum(STATION_STATUSES).optional(), ...pageAfter }),
  z.object({ stations: z.array(stationSchema), hasMore: z.boolean() }),
);
export const getStation = repeatable(
  "registry.getStation",
  z.object({ caller, stationId: id }),
  z.object({ station: stationSchema }),
);
/** Refuses with `invalid_request` when `currency` is not an active ISO 4217 code. */
export const createStation = once(
  "registry.createStation",
  z.object({
    caller,
    filialId: id,
    name,
    currency: currencySchema,
    creation: creation.optional(),
  }),
  stationReply,
);
export const renameStation = once("registry.renameStation", z.object({ caller, stationId: id, name }), stationReply);
/**
 * For a station that already has the status it changes nothing. Refuses with `conflict` when the station's state
 * machine does not allow the move.
 */
export const moveStation = once(
  "registry.moveStation",
  z.object({ caller, stationId: id, move: z.enum(["SUSPEND", "RESUME", "CLOSE"]) }),
  stationReply,
);
