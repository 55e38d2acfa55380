/** A page of the owner's stations, from this gateway's replica. It leaves out stations without an entry. */
import { z } from "zod";
import type { StationState } from "../../../machines/station/state.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import { listStations } from "../../../services/bus/messages/stations.ts";
import type { SessionContext } from "../../http/handler-context.ts";
import { pageAfterQuery, queryId } from "../../http/page.ts";
import { idSchema } from "../../http/shared-schemas.ts";

export const stationPageQuerySchema = z.strictObject({
  filial_id: queryId().optional().meta({
    description: "Only stations of this filial, by its id in the list of filials; of all filials when left out.",
  }),
  ...pageAfterQuery,
});
/** The fields of each of these pages beside its entries. */
export const stationPageMembers = {
  has_more: z.boolean().meta({
    description:
      "Whether there are more stations: ask again with `through_id` as `since_id`. A page covers at most `limit` stations and leaves out those without an entry, so it may be empty although there are more.",
  }),
  through_id: z
    .int()
    .min(0)
    .meta({
      description: "The id of the last station that this page covers; `since_id` when it covers none.",
      examples: [42],
    }),
};
/** The fields of an entry that name its station. */
export const stationNameMembers = { station_id: idSchema, station_name: z.string() };

export const stationNameJson = ({ stationId, name }: StationState) => ({ station_id: stationId, station_name: name });

/**
 * The entries of the organization's next stations, by id. The page ends before an entry that would make the answer too
 * long: an entry about a collection contains the reports of its device, and a device may write long reports.
 */
export async function stationPage<TEntry>(
  { caller, deps, query }: SessionContext<undefined, z.infer<typeof stationPageQuerySchema>>,
  entryOf: (state: StationState) => TEntry | undefined,
) {
  const { filial_id: filialId, since_id: sinceId, limit } = query;
  const { stations, hasMore } = await deps.bus.call(listStations, { caller, filialId, sinceId, limit });
  const entries: TEntry[] = [];
  let bytes = 0;
  let throughId = sinceId;
  for (const { stationId } of stations) {
    const state = deps.station(stationId);
    const entry = state && entryOf(state);
    if (entry !== undefined) {
      bytes += Buffer.byteLength(JSON.stringify(entry));
      if (entries.length > 0 && bytes > BOUNDS.listedBytes) return { entries, has_more: true, through_id: throughId };
      entries.push(entry);
    }
    throughId = stationId;
  }
  return { entries, has_more: hasMore, through_id: throughId };
}
