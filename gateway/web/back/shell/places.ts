/** Filials and stations by id, for names and selections. Each section that uses them reads them. */
import { call, type Result } from "../../shared/call.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { type Loading, useLoad } from "../../shared/use-load.ts";
import { allPages, mapReply, pageOf } from "./loading.tsx";

export type Filial = ReplyOf<"GET /api/backoffice/v1/filials/">["filials"][number];
export type Station = ReplyOf<"GET /api/backoffice/v1/stations/">["stations"][number];

/** Entries of one request; the service accepts more. */
const LIMIT = 200;

const allFilials = (): Promise<Result<readonly Filial[]>> =>
  allPages((since_id) =>
    mapReply(call("GET /api/backoffice/v1/filials/", { query: { since_id, limit: LIMIT } }), (reply) =>
      pageOf(reply.filials, reply.has_more, (filial) => filial.filial_id),
    ),
  );

const allStations = (): Promise<Result<readonly Station[]>> =>
  allPages((since_id) =>
    mapReply(call("GET /api/backoffice/v1/stations/", { query: { since_id, limit: LIMIT } }), (reply) =>
      pageOf(reply.stations, reply.has_more, (station) => station.station_id),
    ),
  );

export interface Places {
  readonly filials: readonly Filial[];
  readonly stations: readonly Station[];
  filialName(id: number): string;
  stationName(id: number): string;
  /** Options for a selection of stations; closed ones are left out. */
  readonly stationOptions: readonly { readonly value: string; readonly text: string }[];
  readonly filialOptions: readonly { readonly value: string; readonly text: string }[];
}

export function usePlaces(): Loading<Places> {
  return useLoad("places", async () => {
    const [filials, stations] = await Promise.all([allFilials(), allStations()]);
    if (!filials.ok) return filials;
    if (!stations.ok) return stations;
    return { ...stations, reply: placesOf(filials.reply, stations.reply) };
  });
}

function placesOf(filials: readonly Filial[], stations: readonly Station[]): Places {
  const filialName = (id: number): string => filials.find(({ filial_id }) => filial_id === id)?.name ?? `#${id}`;
  return {
    filials,
    stations,
    filialName,
    stationName: (id) => stations.find(({ station_id }) => station_id === id)?.name ?? `#${id}`,
    filialOptions: filials.map(({ filial_id, name }) => ({ value: String(filial_id), text: name })),
    stationOptions: stations
      .filter(({ status }) => status !== "closed")
      .map(({ station_id, filial_id, name }) => ({
        value: String(station_id),
        text: filials.length > 1 ? `${name} · ${filialName(filial_id)}` : name,
      })),
  };
}
