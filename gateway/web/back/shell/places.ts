/** Filials and stations by id, for names and selections. Each section that uses them reads them. */
import { call, type Result } from "../../shared/call.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { type Loading, useLoad } from "../../shared/use-load.ts";
import { label } from "./labels.ts";
import { allPages, LARGEST_PAGE, mapReply, pageOf } from "./loading.tsx";

type Filial = ReplyOf<"GET /api/backoffice/v1/filials/">["filials"][number];
export type Station = ReplyOf<"GET /api/backoffice/v1/stations/">["stations"][number];

const allFilials = (): Promise<Result<readonly Filial[]>> =>
  allPages((since_id) =>
    mapReply(call("GET /api/backoffice/v1/filials/", { query: { since_id, limit: LARGEST_PAGE } }), (reply) =>
      pageOf(reply.filials, reply.has_more, (filial) => filial.filial_id),
    ),
  );

const allStations = (): Promise<Result<readonly Station[]>> =>
  allPages((since_id) =>
    mapReply(call("GET /api/backoffice/v1/stations/", { query: { since_id, limit: LARGEST_PAGE } }), (reply) =>
      pageOf(reply.stations, reply.has_more, (station) => station.station_id),
    ),
  );

export interface Places {
  readonly filials: readonly Filial[];
  readonly stations: readonly Station[];
  filialName(id: number): string;
  stationName(id: number): string;
  isClosed(stationId: number): boolean;
  /** Options for what is made or frozen at a station; closed ones are left out. */
  readonly openStations: readonly Option[];
  /** Options for a filter: what a closed station has done can be read for ever. In the language of the page now. */
  stationOptions(): readonly Option[];
  readonly filialOptions: readonly Option[];
}

interface Option {
  readonly value: string;
  readonly text: string;
}

/** Reads them again when `again` changes. */
export function usePlaces(again?: unknown): Loading<Places> {
  return useLoad("places", readPlaces, { again });
}

async function readPlaces(): Promise<Result<Places>> {
  const [filials, stations] = await Promise.all([allFilials(), allStations()]);
  if (!filials.ok) return filials;
  if (!stations.ok) return stations;
  return { ...stations, reply: placesOf(filials.reply, stations.reply) };
}

function placesOf(filials: readonly Filial[], stations: readonly Station[]): Places {
  const filialNames = new Map(filials.map(({ filial_id, name }) => [filial_id, name]));
  const stationNames = new Map(stations.map(({ station_id, name }) => [station_id, name]));
  const filialName = (id: number): string => filialNames.get(id) ?? `#${id}`;
  const optionOf = ({ station_id, filial_id, name }: Station): Option => ({
    value: String(station_id),
    text: filials.length > 1 ? `${name} · ${filialName(filial_id)}` : name,
  });
  const closed = stations.filter(({ status }) => status === "closed");
  const closedIds = new Set(closed.map(({ station_id }) => station_id));
  const openStations = stations.filter(({ station_id }) => !closedIds.has(station_id)).map(optionOf);
  const closedStations = closed.map(optionOf);
  return {
    filials,
    stations,
    filialName,
    stationName: (id) => stationNames.get(id) ?? `#${id}`,
    isClosed: (stationId) => closedIds.has(stationId),
    filialOptions: filials.map(({ filial_id, name }) => ({ value: String(filial_id), text: name })),
    openStations,
    stationOptions: () => [
      ...openStations,
      ...closedStations.map(({ value, text }) => ({ value, text: `${text} (${label("status", "closed")})` })),
    ],
  };
}
