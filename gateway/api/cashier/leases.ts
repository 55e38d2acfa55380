/** A station's lease in the cashiers' API: read, acquire or take over, renew and release it. */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { LEASE_LOSSES, type LeaseHolder, type LostLease } from "../../../machines/lease.ts";
import { STATE_LIMITS } from "../../../machines/settings.ts";
import type { LeaseTerms, StationCommand } from "../../../machines/station/command.ts";
import type { StationState } from "../../../machines/station/state.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import { bindStation } from "../../../services/bus/messages/sessions.ts";
import { RefusedError, UnavailableError } from "../../../services/bus/refusals.ts";
import { idempotencyHeaderSchema, requestDigest, sessionCommandId } from "../../http/command-id.ts";
import { ApiError, ok, type Reply, type SessionContext, type SessionHandler } from "../../http/handler-context.ts";
import { cashierActor, ownStation } from "../../http/own-station.ts";
import { cashierRoute } from "../../http/route.ts";
import { idSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { LIMITS } from "../../limits.ts";

const leaseLossSchema = z.enum(LEASE_LOSSES).meta({
  id: "LeaseLoss",
  description: "`taken_over`: another cashier took the station over. `broken`: the owner freed it.",
});

export const leaseHolderSchema = z
  .object({
    cashier_id: idSchema,
    cashier_name: z.string(),
    acquired_at: timestampSchema,
    expires_at: timestampSchema,
    mine: z.boolean().meta({ description: "Whether the caller holds it." }),
  })
  .meta({ id: "LeaseHolder" });

/** A lease that another person ended, for the screen of its former holder. */
export const lostLeaseSchema = z
  .object({
    cashier_id: idSchema,
    cashier_name: z.string(),
    reason: leaseLossSchema,
    by_name: z.string().meta({ description: "Who ended it." }),
    at: timestampSchema,
    mine: z.boolean().meta({ description: "Whether the caller lost it." }),
  })
  .meta({ id: "LostLease" });

/** The lease: its holder drives the station's collections. */
export const leaseSchema = z
  .object({
    lease: leaseHolderSchema.nullable().meta({ description: "Null while the station is free." }),
    lost_lease: lostLeaseSchema
      .nullable()
      .meta({ description: "The last lease that another person ended; null once the free station was taken again." }),
  })
  .meta({ id: "Lease" });

const lifetimeSecondsSchema = z
  .int()
  .min(BOUNDS.leaseLifetimeMs.min / 1_000)
  .max(BOUNDS.leaseLifetimeMs.max / 1_000)
  .optional()
  .meta({
    description: "How long the lease lasts without a renewal: half a minute to one hour; 15 minutes when left out.",
    examples: [900],
  });

export const leaseBodySchema = z
  .strictObject({
    lifetime_seconds: lifetimeSecondsSchema,
    take_over_from: idSchema.optional().meta({
      description:
        "Confirms a take-over: the `cashier_id` of the lease that the cashier has seen. The holder is notified over the live view, and a collection under way continues with the new holder. Refused with `station_leased` when a different person holds the lease now; a free station is taken as usual.",
    }),
  })
  .meta({ id: "LeaseRequest", examples: [{ lifetime_seconds: 900 }, { take_over_from: 31 }] });

const leaseRenewalBodySchema = z
  .strictObject({ lifetime_seconds: lifetimeSecondsSchema })
  .meta({ id: "LeaseRenewal", examples: [{ lifetime_seconds: 900 }] });

interface Reader {
  readonly userId: number;
  readonly nowMs: number;
}

export function leaseJson(
  state: Pick<StationState, "lease" | "lostLease">,
  reader: Reader,
): z.infer<typeof leaseSchema> {
  return { lease: leaseHolderJson(state.lease, reader), lost_lease: lostLeaseJson(state.lostLease, reader) };
}

/** Null for a free station, and after the deadline of a lease, even if the host has not committed its end yet. */
export function leaseHolderJson(lease: LeaseHolder | null, reader: Reader): z.infer<typeof leaseHolderSchema> | null {
  if (lease === null || lease.expiresAtMs <= reader.nowMs) return null;
  return {
    cashier_id: lease.cashierId,
    cashier_name: lease.cashierName,
    acquired_at: toTimestamp(lease.acquiredAtMs),
    expires_at: toTimestamp(lease.expiresAtMs),
    mine: lease.cashierId === reader.userId,
  };
}

export function lostLeaseJson(
  lost: LostLease | null,
  { userId }: Pick<Reader, "userId">,
): z.infer<typeof lostLeaseSchema> | null {
  if (lost === null) return null;
  const { cashierId, cashierName, reason, byName, atMs } = lost;
  return {
    cashier_id: cashierId,
    cashier_name: cashierName,
    reason,
    by_name: byName,
    at: toTimestamp(atMs),
    mine: cashierId === userId,
  };
}

type AnyContext = SessionContext<unknown, unknown>;

export const getLease: SessionHandler = async (context) => {
  const { caller, deps } = context;
  return ok(leaseJson(await ownStation(context), { userId: caller.userId, nowMs: deps.nowMs() }));
};

/**
 * Acquires the lease or takes it over. Errors: `station_leased` with the holder's name as `reason`, `station_closed`,
 * `idempotency_key_reused`, and `lease_required` for a repetition whose lease has ended.
 */
const acquireLease: SessionHandler<z.infer<typeof leaseBodySchema>> = async (context) => {
  const station = await ownStation(context);
  const { lifetime_seconds, take_over_from: takeOverFrom } = context.body;
  const terms = await leaseTerms(context, station, lifetime_seconds);
  const command = { type: "lease_acquire", takeOverFrom, requestDigest: requestDigest(context), ...terms } as const;
  return await moveLease(context, station, command).catch(asEndedLease);
};

function asEndedLease(error: unknown): never {
  if (!(error instanceof ApiError) || error.code !== "lease_required") throw error;
  const detail = "The lease that this idempotency key acquired has ended; take the station with a new key.";
  throw new ApiError("lease_required", { detail });
}

/** Errors: `lease_required` when the lease has expired, `station_leased` when another cashier holds the lease. */
const renewLease: SessionHandler<z.infer<typeof leaseRenewalBodySchema>> = async (context) => {
  const station = await ownStation(context);
  const terms = await leaseTerms(context, station, context.body.lifetime_seconds);
  return await moveLease(context, station, { type: "lease_renew", ...terms });
};

/** Releasing a free station is no error. Error: `station_leased`. */
const releaseLease: SessionHandler = async (context) =>
  await moveLease(context, await ownStation(context), { type: "lease_release" });

/**
 * The lifetime and the session of the lease. The registry first stores that the session drives the station, so that the end of
 * the session ends the lease. If the session already holds the lease, this is already stored. Cash must not wait for the
 * registry: without its answer the lease is short and bound to no session, and the next renewal tries again.
 */
async function leaseTerms(
  context: AnyContext,
  { stationId, lease }: StationState,
  lifetimeSeconds: number | undefined,
): Promise<LeaseTerms> {
  const { caller, deps } = context;
  const { sessionId } = caller;
  const lifetimeMs = lifetimeSeconds === undefined ? undefined : lifetimeSeconds * 1_000;
  const bound = { lifetimeMs, session: { sessionId, expiresAtMs: caller.expiresAtMs } };
  if (lease?.sessionId === sessionId) return bound;
  try {
    await deps.bus.call(bindStation, { caller, sessionId, stationId }, LIMITS.bindStationMs);
    return bound;
  } catch (error) {
    if (error instanceof UnavailableError) {
      deps.log.warn({ stationId, sessionId }, "the registry does not answer, so the lease is bound to no session");
      return { lifetimeMs: Math.min(lifetimeMs ?? LIMITS.unboundLeaseMs, LIMITS.unboundLeaseMs) };
    }
    throw asSessionError(error);
  }
}

type LeaseCommand = Extract<StationCommand, { type: "lease_acquire" | "lease_renew" | "lease_release" }>;

async function moveLease(context: AnyContext, { stationId }: StationState, command: LeaseCommand): Promise<Reply> {
  const { caller, deps } = context;
  // A renewal has no key: each one, even a repeated one, counts from now.
  const isRenewal = command.type === "lease_renew";
  const commandId = isRenewal ? `lease_renew:${randomUUID()}` : sessionCommandId(context, command.type, stationId);
  const asked = deps.bus.command(stationId, { commandId, actor: cashierActor(context), command });
  const { reply } = await asked.catch((error: unknown) => {
    throw asSessionError(error);
  });
  if (reply.type !== "lease") throw new Error(`A station answered ${command.type} with ${reply.type}.`);
  return ok(leaseJson(reply, { userId: caller.userId, nowMs: deps.nowMs() }));
}

/** If the session ended during its request, the error of every later request of the session. */
function asSessionError(error: unknown): unknown {
  const code = error instanceof ApiError ? error.code : error instanceof RefusedError ? error.refusal.code : undefined;
  return code === "session_ended" ? new ApiError("session_invalid") : error;
}

const path = "/api/cashier/v1/stations/{station_id}/lease/";
const replies = { 200: { description: "The lease after the change.", schema: leaseSchema } };

export const leaseRoutes = [
  cashierRoute({
    method: "GET",
    path,
    operation: "getLease",
    summary: "See who drives the station",
    description:
      "A lease ends at `expires_at` unless it is renewed before, and with the session that took or renewed it last: on sign-out, suspension, a new password, a change of role.",
    replies: { 200: { description: "The lease, and the last one that another person ended.", schema: leaseSchema } },
    errors: ["not_found"],
    handler: getLease,
  }),
  cashierRoute({
    method: "POST",
    path,
    operation: "acquireLease",
    summary: "Take the station",
    description: `The cashier who holds the lease drives the station's collections, from any of their sessions. Taking it again renews it. \`take_over_from\` takes it over from another cashier. A repetition under the same \`Idempotency-Key\` takes nothing again and shows the lease as it is now; once that lease has ended it is refused: with \`station_leased\` while another cashier drives the station, with \`lease_required\` while it is free. Then send a new key. The station keeps the answers of ${STATE_LIMITS.replies} commands; after as many further ones the same key takes the station again.`,
    headers: idempotencyHeaderSchema,
    body: leaseBodySchema,
    bodyOptional: true,
    replies,
    errors: ["not_found", "station_leased", "lease_required", "station_closed", "conflict", "idempotency_key_reused"],
    handler: acquireLease,
  }),
  cashierRoute({
    method: "PUT",
    path,
    operation: "renewLease",
    summary: "Keep the station",
    description:
      "Only the holder can renew the lease. Take an expired lease again with POST. The new lifetime starts now, also when the request is repeated, so it needs no key.",
    body: leaseRenewalBodySchema,
    bodyOptional: true,
    replies,
    errors: ["not_found", "station_leased", "lease_required", "conflict"],
    handler: renewLease,
  }),
  cashierRoute({
    method: "DELETE",
    path,
    operation: "releaseLease",
    summary: "Give the station back",
    description:
      "A collection under way continues, and the cashier who takes the station next attests or cancels it. The answer is the same when the station is already free. A repetition under the same `Idempotency-Key` does not release the station again and shows the lease as it is now, as long as the station keeps the answer, as for POST.",
    headers: idempotencyHeaderSchema,
    replies,
    errors: ["not_found", "station_leased"],
    handler: releaseLease,
  }),
];
