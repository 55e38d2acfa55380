/** The names of filials and stations, for people who see only ids in issues, accounts and reports. */
import { z } from "zod";
import { listFilials } from "../../../services/bus/messages/filials.ts";
import { listStations } from "../../../services/bus/messages/stations.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery } from "../../http/page.ts";
import { reconciliationRoute } from "../../http/route.ts";
import { idSchema } from "../../http/shared-schemas.ts";

const filialsSchema = z.object({
  filials: z.array(z.object({ filial_id: idSchema, name: z.string() }).meta({ id: "NamedFilial" })),
  has_more: hasMoreAfter,
});
const stationsSchema = z.object({
  stations: z.array(
    z.object({ station_id: idSchema, filial_id: idSchema, name: z.string() }).meta({ id: "NamedStation" }),
  ),
  has_more: hasMoreAfter,
});
const querySchema = z.strictObject(pageAfterQuery);
type ListHandler = SessionHandler<undefined, z.infer<typeof querySchema>>;

const listNamedFilials: ListHandler = async ({ caller, deps, query }) => {
  const { since_id: sinceId, limit } = query;
  const { filials, hasMore } = await deps.bus.call(listFilials, { caller, sinceId, limit });
  return ok({
    filials: filials.map(({ filialId, name }) => ({ filial_id: filialId, name })),
    has_more: hasMore,
  });
};

const listNamedStations: ListHandler = async ({ caller, deps, query }) => {
  const { since_id: sinceId, limit } = query;
  const { stations, hasMore } = await deps.bus.call(listStations, { caller, sinceId, limit });
  return ok({
    stations: stations.map(({ stationId, filialId, name }) => ({ station_id: stationId, filial_id: filialId, name })),
    has_more: hasMore,
  });
};

export const placeRoutes = [
  reconciliationRoute({
    method: "GET",
    path: "/api/reconciliation/v1/filials/",
    operation: "listFilials",
    summary: "List the filials by name",
    description: "The names of the filials whose ids are in accounts, payments and day reports.",
    query: querySchema,
    replies: { 200: { description: "By id.", schema: filialsSchema } },
    handler: listNamedFilials,
  }),
  reconciliationRoute({
    method: "GET",
    path: "/api/reconciliation/v1/stations/",
    operation: "listStations",
    summary: "List the stations by name",
    description: "The names of the stations whose ids are in issues and payments, including closed stations.",
    query: querySchema,
    replies: { 200: { description: "By id.", schema: stationsSchema } },
    handler: listNamedStations,
  }),
];
