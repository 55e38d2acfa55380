/** What the owner reads of the day's work: orders, leases and active collections of all stations (design §5). */
import { z } from "zod";
import { orderStatusSchema } from "../http/enums.ts";
import { pageAfterQuery, pageBeforeQuery, queryId } from "../http/page.ts";
import { idSchema } from "../http/shared-schemas.ts";
import { leaseHolderSchema } from "./cashier.ts";
import { intentSchema } from "./intent.ts";

export const ownOrdersQuerySchema = z.strictObject({
  station_id: queryId().optional().meta({ description: "Only orders of this station." }),
  status: orderStatusSchema.optional().meta({ description: "Only orders of this status; all when left out." }),
  ...pageBeforeQuery,
});

/** Stations are gone through by id, and those without what is listed are left out. */
export const stationPageQuerySchema = z.strictObject({
  filial_id: queryId().optional().meta({ description: "Only stations of this filial." }),
  ...pageAfterQuery,
});
const stationPage = {
  has_more: z.boolean().meta({
    description:
      "Whether there are more stations: ask again with `through_id` as `since_id`. A page goes through `limit` stations and leaves out those without an entry, so it may be empty although there are more.",
  }),
  through_id: z
    .int()
    .min(0)
    .meta({
      description: "The id of the last station that this page went through; `since_id` when there was none.",
      examples: [42],
    }),
};
const station = { station_id: idSchema, station_name: z.string() };

export const leasesSchema = z.object({
  leases: z.array(z.object({ ...station, lease: leaseHolderSchema }).meta({ id: "StationLease" })),
  ...stationPage,
});
export const activeIntentsSchema = z.object({
  active_intents: z.array(z.object({ ...station, intent: intentSchema }).meta({ id: "StationIntent" })),
  ...stationPage,
});
