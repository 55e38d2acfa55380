/** Stations as their owner set them up. A foreign id is `not_found`. */
import { z } from "zod";
import { STATION_STATUSES } from "../../../machines/standing.ts";
import { BOUNDS } from "../bounds.ts";
import { defineOperation } from "../operation.ts";
import { pageAfter } from "../page.ts";
import { barrierSchema, callerSchema as caller } from "./caller.ts";
import { nameSchema as name } from "./name.ts";

const id = z.int().positive();

export const stationSchema = z.object({
  stationId: id,
  filialId: id,
  name: z.string(),
  currency: z.string(),
  status: z.enum(STATION_STATUSES),
  sandbox: z.boolean(),
  createdAtMs: z.number(),
});
export type Station = z.infer<typeof stationSchema>;

const stationReply = z.object({ station: stationSchema, barrier: barrierSchema });
export const listStations = defineOperation(
  "registry.listStations",
  "repeatable",
  z.object({ caller, filialId: id.optional(), ...pageAfter }),
  z.object({ stations: z.array(stationSchema), hasMore: z.boolean() }),
);
export const getStation = defineOperation(
  "registry.getStation",
  "repeatable",
  z.object({ caller, stationId: id }),
  z.object({ station: stationSchema }),
);
export const createStation = defineOperation(
  "registry.createStation",
  "once",
  z.object({ caller, filialId: id, name, currency: z.string().length(BOUNDS.currencyCharacters) }),
  stationReply,
);
export const renameStation = defineOperation(
  "registry.renameStation",
  "once",
  z.object({ caller, stationId: id, name }),
  stationReply,
);
/** Moves a station's standing. One that is as asked stays so; a step that its machine does not have is `conflict`. */
export const moveStation = defineOperation(
  "registry.moveStation",
  "once",
  z.object({ caller, stationId: id, move: z.enum(["SUSPEND", "RESUME", "CLOSE"]) }),
  stationReply,
);
