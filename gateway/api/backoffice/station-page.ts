/** A page of the owner's stations as this gateway's replica has them; stations without what is listed are left out. */
import { z } from "zod";
import type { StationState } from "../../../machines/station/state.ts";
import { listStations } from "../../../services/bus/messages/stations.ts";
import type { SessionContext } from "../../http/handler-context.ts";
import { pageAfterQuery, queryId } from "../../http/page.ts";
import { idSchema } from "../../http/shared-schemas.ts";

export const stationPageQuerySchema = z.strictObject({
  filial_id: queryId().optional().meta({ description: "Only stations of this filial." }),
  ...pageAfterQuery,
});
/** What every such page has beside its entries. */
export const stationPageMembers = {
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
/** Which station an entry is about. */
export const stationNameMembers = { station_id: idSchema, station_name: z.string() };

export const stationNameJson = ({ stationId, name }: StationState) => ({ station_id: stationId, station_name: name });

/** The next stations of the organization, by id. */
export async function stationPage({
  caller,
  deps,
  query,
}: SessionContext<undefined, z.infer<typeof stationPageQuerySchema>>) {
  const { filial_id: filialId, since_id: sinceId, limit } = query;
  const { stations, hasMore } = await deps.bus.call(listStations, { caller, filialId, sinceId, limit });
  return {
    states: stations.flatMap(({ stationId }) => deps.station(stationId) ?? []),
    has_more: hasMore,
    through_id: stations.at(-1)?.stationId ?? sinceId,
  };
}
