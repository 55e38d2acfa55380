/** Stations in the owner's API. For another organization's, the error is `not_found`. */
import { z } from "zod";
import { STATION_STATUSES, type StationStandingEvent } from "../../../machines/standing.ts";
import * as messages from "../../../services/bus/messages/stations.ts";
import { creationHeaderSchema, creationOf } from "../../http/command-id.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import {
  activeCurrencySchema,
  currencySchema,
  idSchema,
  nameSchema,
  timestampSchema,
  toTimestamp,
} from "../../http/shared-schemas.ts";
import { stationPageQuerySchema } from "./station-page.ts";

export const stationStatusSchema = z.enum(STATION_STATUSES).meta({ id: "StationStatus" });
export const stationSchema = z
  .object({
    station_id: idSchema,
    filial_id: idSchema,
    name: z.string(),
    currency: currencySchema,
    status: stationStatusSchema,
    sandbox: z.boolean().meta({
      description:
        "Whether the station is for tests: it belongs to a sandbox, and its QR provider has the mode `test`. Every other station has a provider of mode `live`.",
    }),
    created_at: timestampSchema,
  })
  .meta({
    id: "Station",
    examples: [
      {
        station_id: 1,
        filial_id: 1,
        name: "Counter 1",
        currency: "EUR",
        status: "suspended",
        sandbox: false,
        created_at: "2026-11-20T12:00:00.000Z",
      },
    ],
  });
const stationsSchema = z.object({ stations: z.array(stationSchema), has_more: hasMoreAfter });
const querySchema = stationPageQuerySchema.extend({
  status: stationStatusSchema.optional().meta({ description: "Only stations of this status; all when left out." }),
});
const createBodySchema = z
  .strictObject({ filial_id: idSchema, name: nameSchema, currency: activeCurrencySchema })
  .meta({ id: "CreateStation", examples: [{ filial_id: 1, name: "Counter 1", currency: "EUR" }] });
const renameBodySchema = z
  .strictObject({ name: nameSchema })
  .meta({ id: "RenameStation", examples: [{ name: "Counter 2" }] });

const stationJson = (station: messages.Station): z.infer<typeof stationSchema> => ({
  station_id: station.stationId,
  filial_id: station.filialId,
  name: station.name,
  currency: station.currency,
  status: station.status,
  sandbox: station.sandbox,
  created_at: toTimestamp(station.createdAtMs),
});

const listStations: SessionHandler<undefined, z.infer<typeof querySchema>> = async ({ caller, deps, query }) => {
  const { filial_id: filialId, status, since_id: sinceId, limit } = query;
  const request = { caller, filialId, status, sinceId, limit };
  const { stations, hasMore } = await deps.bus.call(messages.listStations, request);
  return ok({ stations: stations.map(stationJson), has_more: hasMore });
};

const createStation: SessionHandler<z.infer<typeof createBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { filial_id: filialId, name, currency } = body;
  const request = { caller, filialId, name, currency, creation: creationOf(context, "station") };
  const { station } = await deps.bus.call(messages.createStation, request);
  return created(stationJson(station));
};

const getStation: SessionHandler = async ({ caller, deps, id }) => {
  const { station } = await deps.bus.call(messages.getStation, { caller, stationId: id("station_id") });
  return ok(stationJson(station));
};

const renameStation: SessionHandler<z.infer<typeof renameBodySchema>> = async ({ caller, deps, body, id }) => {
  const request = { caller, stationId: id("station_id"), name: body.name };
  const { station } = await deps.bus.call(messages.renameStation, request);
  return ok(stationJson(station));
};

const moveStation =
  (move: StationStandingEvent["type"]): SessionHandler =>
  async ({ caller, deps, id }) => {
    const { station } = await deps.bus.call(messages.moveStation, { caller, stationId: id("station_id"), move });
    return ok(stationJson(station));
  };

const STATION = "/api/backoffice/v1/stations/{station_id}";
const stationReply = { 200: { description: "The station after the change.", schema: stationSchema } };

export const backofficeStationRoutes = [
  backofficeRoute({
    method: "GET",
    path: "/api/backoffice/v1/stations/",
    operation: "listStations",
    summary: "List the stations",
    description: "The list includes closed stations.",
    query: querySchema,
    replies: { 200: { description: "By id.", schema: stationsSchema } },
    handler: listStations,
  }),
  backofficeRoute({
    method: "POST",
    path: "/api/backoffice/v1/stations/",
    operation: "createStation",
    summary: "Add a station",
    description: "The currency of a station cannot change.",
    headers: creationHeaderSchema,
    body: createBodySchema,
    replies: { 201: { description: "The station.", schema: stationSchema } },
    errors: ["not_found", "idempotency_key_reused"],
    awaitsEffect: true,
    handler: createStation,
  }),
  backofficeRoute({
    method: "GET",
    path: `${STATION}/`,
    operation: "getStation",
    summary: "Read a station",
    description: "Shows the owner's settings. The cashier's API shows who drives the station and what it collects.",
    replies: { 200: { description: "The station.", schema: stationSchema } },
    errors: ["not_found"],
    handler: getStation,
  }),
  backofficeRoute({
    method: "PATCH",
    path: `${STATION}/`,
    operation: "renameStation",
    summary: "Rename a station",
    description: "Devices show the new name with their next poll; a collection under way keeps the old one.",
    body: renameBodySchema,
    replies: stationReply,
    errors: ["not_found"],
    awaitsEffect: true,
    handler: renameStation,
  }),
  backofficeRoute({
    method: "POST",
    path: `${STATION}/suspend/`,
    operation: "suspendStation",
    summary: "Suspend a station",
    description: "Until it is resumed, its devices are refused and the station offers no route.",
    replies: stationReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: moveStation("SUSPEND"),
  }),
  backofficeRoute({
    method: "POST",
    path: `${STATION}/resume/`,
    operation: "resumeStation",
    summary: "Resume a station",
    description: "Ends a suspension: its devices and routes work again at once. A closed station stays closed.",
    replies: stationReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: moveStation("RESUME"),
  }),
  backofficeRoute({
    method: "POST",
    path: `${STATION}/close/`,
    operation: "closeStation",
    summary: "Close a station",
    description: "Cannot be undone: a closed station never opens again.",
    replies: stationReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: moveStation("CLOSE"),
  }),
];
