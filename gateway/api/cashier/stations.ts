/** The stations of the cashier's organization, whether each may collect, and who drives it. */
import { z } from "zod";
import { blockedReason, type KillSwitches } from "../../../machines/standing.ts";
import type { StationState } from "../../../machines/station/state.ts";
import * as bus from "../../../services/bus/messages/stations.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery, pageOnWire } from "../../http/page.ts";
import { cashierRoute } from "../../http/route.ts";
import { idSchema } from "../../http/shared-schemas.ts";
import { blockedReasonSchema } from "../backoffice/devices.ts";
import { stationSchema as ownerStationSchema } from "../backoffice/stations.ts";
import { leaseHolderJson, leaseHolderSchema } from "./leases.ts";

const { station_id, filial_id, name, currency, status, sandbox } = ownerStationSchema.shape;
const stationSchema = z
  .object({
    station_id,
    filial_id,
    name,
    currency,
    status,
    sandbox,
    blocked_reason: blockedReasonSchema.meta({ description: "Why the station is blocked now; empty when it is not." }),
    lease: leaseHolderSchema.nullable(),
    active_intent_id: idSchema.nullable(),
  })
  .meta({ id: "CashierStation" });

export const stationsSchema = z.object({ stations: z.array(stationSchema), has_more: hasMoreAfter });
const stationsQuerySchema = z.strictObject(pageAfterQuery);

/** `state` is undefined while this gateway has not received the station's first commit. */
function stationJson(
  station: bus.Station,
  state: StationState | undefined,
  facts: { readonly switches: KillSwitches; readonly userId: number; readonly nowMs: number; organizationId: number },
): z.infer<typeof stationSchema> {
  const { stationId, status: stationStatus } = station;
  return {
    station_id: stationId,
    filial_id: station.filialId,
    name: station.name,
    currency: station.currency,
    status: stationStatus,
    sandbox: station.sandbox,
    blocked_reason: blockedReason({ organizationId: facts.organizationId, stationId, stationStatus }, facts.switches),
    lease: leaseHolderJson(state?.lease ?? null, facts),
    active_intent_id: state?.intent?.intentId ?? null,
  };
}

const listStations: SessionHandler<undefined, z.infer<typeof stationsQuerySchema>> = async ({
  caller,
  deps,
  query,
}) => {
  const { since_id: sinceId, limit } = query;
  const found = await deps.bus.call(bus.listStations, { caller, sinceId, limit });
  const { userId, organizationId } = caller;
  const facts = { switches: deps.switches(), nowMs: deps.nowMs(), userId, organizationId };
  const json = found.stations.map((station) => stationJson(station, deps.station(station.stationId), facts));
  const { page, hasMore } = pageOnWire(json, found.hasMore);
  return ok({ stations: page, has_more: hasMore });
};

export const stationRoutes = [
  cashierRoute({
    method: "GET",
    path: "/api/cashier/v1/stations/",
    operation: "listStations",
    summary: "List the stations",
    description: "All stations of the organization, with who drives each and what it is collecting.",
    query: stationsQuerySchema,
    replies: { 200: { description: "By id.", schema: stationsSchema } },
    handler: listStations,
  }),
];
