/** The routes that a station offers now, the reason for each one that it does not, and the companions for `smart_pos`. */
import { z } from "zod";
import type { PaymentIntent } from "../../../machines/payment-intent.ts";
import { SET_BACK_MS } from "../../../machines/settings.ts";
import { blockedReason, type KillSwitches } from "../../../machines/standing.ts";
import { WITHDRAWAL_REASONS } from "../../../machines/station/reply.ts";
import type { StationDevice, StationState } from "../../../machines/station/state.ts";
import { companionOffers, routeOffers } from "../../../machines/views/routes.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { ownStation } from "../../http/own-station.ts";
import { cashierRoute } from "../../http/route.ts";
import { idSchema, optionalTimestamp, timestampSchema } from "../../http/shared-schemas.ts";
import { LIMITS } from "../../limits.ts";
import { blockedReasonSchema, livenessJson, livenessSchema } from "../backoffice/devices.ts";
import { paymentRouteSchema } from "./intent-json.ts";

const withdrawalReasonSchema = z.enum(WITHDRAWAL_REASONS).meta({
  id: "WithdrawalReason",
  description:
    "`no_companion`: the station has none. `device_offline`: the companion sends no heartbeat. `device_not_enrolled`: its enrollment code was not claimed. `capability_missing`: it lacks `handoff_present` or `outcome_report`. `provider_not_configured`: no payment provider serves the station. `provider_frozen`: it is frozen by a kill switch. The others as in `BlockedReason`.",
});

export const routeOfferSchema = z
  .object({
    route: paymentRouteSchema,
    offered: z.boolean(),
    reason: withdrawalReasonSchema.nullable().meta({
      description:
        "Why it is not offered; null when it is. Where several companions are there, `smart_pos` names the first of: one that went offline; one that is online and blocked; one that was never online; one that is offline and blocked; one that is not enrolled; one without the capabilities.",
    }),
    since: timestampSchema.nullable().meta({ description: "Since when the reason holds, where that is known." }),
  })
  .meta({ id: "RouteOffer" });

const READINESS = ["ready", "not_polling", "offline"] as const;

/** A companion, whether or not it can get a smart POS collection now. */
export const companionSchema = z
  .object({
    device_id: idSchema,
    name: z.string(),
    liveness: livenessSchema,
    readiness: z.enum(READINESS).meta({
      id: "CompanionReadiness",
      description:
        "`not_polling`: it sends heartbeats, but has not asked for its assignment for 35 seconds outside of a collection; a collection handed to it would wait. `ready` does not depend on what blocks it.",
    }),
    last_polled_at: timestampSchema
      .nullable()
      .meta({ description: "When it last asked for its assignment, noted every 10 seconds; null when never." }),
    blocked_reason: blockedReasonSchema,
    offered: z.boolean().meta({ description: "Whether a smart POS collection can be handed to it now." }),
    reason: withdrawalReasonSchema.nullable().meta({ description: "Why none can be handed to it; null when one can." }),
  })
  .meta({ id: "Companion" });

export const routesSchema = z.object({ routes: z.array(routeOfferSchema), companions: z.array(companionSchema) }).meta({
  id: "RoutesOffered",
  examples: [
    {
      routes: [
        { route: "smart_pos", offered: false, reason: "device_offline", since: "2026-11-20T12:00:00.000Z" },
        { route: "dynamic_qr", offered: false, reason: "provider_not_configured", since: null },
        { route: "attested_terminal", offered: true, reason: null, since: null },
        { route: "cash", offered: true, reason: null, since: null },
      ],
      companions: [
        {
          device_id: 42,
          name: "Companion",
          liveness: { online: false, last_seen_at: "2026-11-20T11:59:35.000Z", since: "2026-11-20T12:00:00.000Z" },
          readiness: "offline",
          last_polled_at: "2026-11-20T11:59:34.000Z",
          blocked_reason: "",
          offered: false,
          reason: "device_offline",
        },
      ],
    },
  ],
});

export interface RoutesFacts {
  readonly switches: KillSwitches;
  readonly polledAtMs: (deviceId: number) => number | null;
  readonly nowMs: number;
}

export function routesJson(state: StationState, facts: RoutesFacts): z.infer<typeof routesSchema> {
  const { switches, nowMs } = facts;
  const { organizationId, stationId, status: stationStatus } = state;
  return {
    routes: routeOffers(state, switches).map(({ route: name, reason, sinceMs }) => ({
      route: name,
      offered: reason === null,
      reason,
      since: optionalTimestamp(sinceMs),
    })),
    companions: companionOffers(state, switches).map(({ device, reason }) => ({
      device_id: device.deviceId,
      name: device.name,
      liveness: livenessJson(device.liveness),
      readiness: readinessOf(state, device, facts.polledAtMs(device.deviceId), nowMs).readiness,
      last_polled_at: optionalTimestamp(facts.polledAtMs(device.deviceId)),
      blocked_reason: blockedReason({ organizationId, stationId, stationStatus, device }, switches),
      offered: reason === null,
      reason,
    })),
  };
}

/** Whether a companion would fetch a collection now: it sends heartbeats, and it polls its assignment. */
interface CompanionReadiness {
  readonly readiness: (typeof READINESS)[number];
  /** When the readiness changes because time passes. Infinity when only new data changes it. */
  readonly validUntilMs: number;
}

/**
 * A companion need not poll during a collection (contract, "GET assignment"). So it is ready while a collection that it has
 * fetched is under way. After the end, the time until its next poll counts from the end.
 */
export function readinessOf(
  state: Pick<StationState, "intent" | "ended">,
  device: Pick<StationDevice, "deviceId" | "liveness">,
  polledAtMs: number | null,
  nowMs: number,
): CompanionReadiness {
  if (device.liveness.state === "offline") return { readiness: "offline", validUntilMs: Number.POSITIVE_INFINITY };
  const isCollecting = state.intent?.deviceId === device.deviceId && state.intent.status !== "created";
  if (isCollecting) return { readiness: "ready", validUntilMs: Number.POSITIVE_INFINITY };
  // A companion that has never polled is not ready, even if the station has collected.
  if (polledAtMs === null) return { readiness: "not_polling", validUntilMs: Number.POSITIVE_INFINITY };
  const endedAtMs = state.ended.filter(wasFetchedBy(device)).map((intent) => intent.endedAtMs ?? 0);
  // A time ahead of the clock is from before the clock was set back: it may be long ago.
  const known = [polledAtMs, ...endedAtMs].filter((atMs) => atMs <= nowMs + SET_BACK_MS);
  const dueMs = Math.max(0, ...known) + LIMITS.pollSilenceMs;
  return dueMs > nowMs
    ? { readiness: "ready", validUntilMs: dueMs }
    : { readiness: "not_polling", validUntilMs: Number.POSITIVE_INFINITY };
}

const wasFetchedBy =
  ({ deviceId }: Pick<StationDevice, "deviceId">) =>
  (intent: PaymentIntent): boolean =>
    intent.deviceId === deviceId && intent.presentedAtMs !== null;

const listRoutes: SessionHandler = async (context) => {
  const { deps } = context;
  const state = await ownStation(context);
  return ok(routesJson(state, { switches: deps.switches(), polledAtMs: deps.polledAtMs, nowMs: deps.nowMs() }));
};

export const routeOfferRoutes = [
  cashierRoute({
    method: "GET",
    path: "/api/cashier/v1/stations/{station_id}/routes/",
    operation: "listRoutes",
    summary: "See the routes offered now",
    description:
      "Each route that is not offered has the reason. A freeze of the station, the organization or the platform withdraws all but cash. A freeze of the companion withdraws `smart_pos` while no other companion can take the collection, and a freeze of the provider withdraws `dynamic_qr`.",
    replies: { 200: { description: "The routes and the companions behind `smart_pos`.", schema: routesSchema } },
    errors: ["not_found"],
    handler: listRoutes,
  }),
];
