/** The leases in the owner's API: who drives which station, and how the owner ends a lease. */
import { z } from "zod";
import { idempotencyHeaderSchema, sessionCommandId } from "../../http/command-id.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { ownStation } from "../../http/own-station.ts";
import { backofficeRoute } from "../../http/route.ts";
import { getLease, leaseHolderJson, leaseHolderSchema, leaseJson, leaseSchema } from "../cashier/leases.ts";
import {
  stationNameJson,
  stationNameMembers,
  stationPage,
  stationPageMembers,
  stationPageQuerySchema,
} from "./station-page.ts";

export const stationLeasesSchema = z.object({
  leases: z.array(z.object({ ...stationNameMembers, lease: leaseHolderSchema }).meta({ id: "StationLease" })),
  ...stationPageMembers,
});

const listStationLeases: SessionHandler<undefined, z.infer<typeof stationPageQuerySchema>> = async (context) => {
  const reader = { userId: context.caller.userId, nowMs: context.deps.nowMs() };
  const { entries: leases, ...page } = await stationPage(context, (state) => {
    const lease = leaseHolderJson(state.lease, reader);
    return lease === null ? undefined : { ...stationNameJson(state), lease };
  });
  return ok({ leases, ...page } satisfies z.infer<typeof stationLeasesSchema>);
};

/** Ends a lease. The live view notifies the cashier, and the event has both names. A free station gives the same answer. */
const breakStationLease: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { stationId } = await ownStation(context);
  const { reply } = await deps.bus.command(stationId, {
    commandId: sessionCommandId(context, "lease_break", stationId),
    actor: { kind: "owner", id: caller.userId, name: caller.name },
    command: { type: "lease_break" },
  });
  if (reply.type !== "lease") throw new Error(`A station answered lease_break with ${reply.type}.`);
  return ok(leaseJson(reply, { userId: caller.userId, nowMs: deps.nowMs() }));
};

const root = "/api/backoffice/v1";
const lease = `${root}/stations/{station_id}/lease/` as const;

export const backofficeLeaseRoutes = [
  backofficeRoute({
    method: "GET",
    path: lease,
    operation: "getStationLease",
    summary: "See who drives the station",
    description: "The same answer as in the cashier's API.",
    replies: { 200: { description: "The lease, and the last one that another person ended.", schema: leaseSchema } },
    errors: ["not_found"],
    handler: getLease,
  }),
  backofficeRoute({
    method: "DELETE",
    path: lease,
    operation: "breakStationLease",
    summary: "Free the station",
    description:
      "Ends the lease of the cashier who drives the station. The live view notifies the cashier, and the cashier may take the station again; suspend the cashier to prevent that. A collection under way continues, and the next cashier attests or cancels it. The station's events name the owner and the cashier. The answer is the same when the station is already free. A repetition under the same `Idempotency-Key` does not end a later lease; it shows the current lease.",
    headers: idempotencyHeaderSchema,
    replies: { 200: { description: "The lease after the change.", schema: leaseSchema } },
    errors: ["not_found"],
    handler: breakStationLease,
  }),
  backofficeRoute({
    method: "GET",
    path: `${root}/leases/`,
    operation: "listStationLeases",
    summary: "See who drives which station",
    description:
      "Free stations are left out. `backoffice_get_station_lease` reads the lease of one station; `backoffice_break_station_lease` ends it.",
    query: stationPageQuerySchema,
    replies: { 200: { description: "By station.", schema: stationLeasesSchema } },
    handler: listStationLeases,
  }),
];
