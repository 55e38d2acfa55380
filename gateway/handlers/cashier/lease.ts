/** The station's lease: see who holds it, take it or take it over, keep it, give it back. */
import { randomUUID } from "node:crypto";
import type { z } from "zod";
import type { LeaseTerms, StationCommand } from "../../../machines/station/command.ts";
import type { StationState } from "../../../machines/station/state.ts";
import { bindStation } from "../../../services/bus/messages/sessions.ts";
import { RefusedError, UnavailableError } from "../../../services/bus/refusals.ts";
import type { leaseBodySchema, leaseRenewalBodySchema } from "../../contract/cashier.ts";
import { requestDigest, sessionCommandId } from "../../http/command-id.ts";
import { ok, Refusal, type Reply, type SessionContext, type SessionHandler } from "../../http/handler-context.ts";
import { cashierActor, ownStation } from "../../http/own-station.ts";
import { LIMITS } from "../../limits.ts";
import { stationLeaseWire } from "./lease-wire.ts";

type AnyContext = SessionContext<unknown, unknown>;

export const getLease: SessionHandler = async (context) => {
  const { caller, deps } = context;
  return ok(stationLeaseWire(await ownStation(context), { userId: caller.userId, nowMs: deps.nowMs() }));
};

/**
 * Refusals: `station_leased` with the holder's name as `reason`, `station_closed`, `idempotency_key_reused`, and
 * `lease_required` for a repetition whose lease has ended.
 */
export const acquireLease: SessionHandler<z.infer<typeof leaseBodySchema>> = async (context) => {
  const station = await ownStation(context);
  const { lifetime_seconds, take_over_from: takeOverFrom } = context.body;
  const terms = await leaseTerms(context, station, lifetime_seconds);
  const command = { type: "lease_acquire", takeOverFrom, requestDigest: requestDigest(context), ...terms } as const;
  return await moveLease(context, station, command).catch(asEndedLease);
};

function asEndedLease(error: unknown): never {
  if (!(error instanceof Refusal) || error.code !== "lease_required") throw error;
  const detail = "The lease that this idempotency key acquired has ended; take the station with a new key.";
  throw new Refusal("lease_required", { detail });
}

/** Refusals: `lease_required` when it has lapsed, `station_leased` when somebody else holds it. */
export const renewLease: SessionHandler<z.infer<typeof leaseRenewalBodySchema>> = async (context) => {
  const station = await ownStation(context);
  const terms = await leaseTerms(context, station, context.body.lifetime_seconds);
  return await moveLease(context, station, { type: "lease_renew", ...terms });
};

/** Releasing a free station is no error. Refusal: `station_leased`. */
export const releaseLease: SessionHandler = async (context) =>
  await moveLease(context, await ownStation(context), { type: "lease_release" });

/**
 * What the lease is asked for. The registry notes the station first, so that the end of the session reaches it; a session
 * that holds the lease already is noted. Cash must not wait for the registry: without its answer the lease is short and
 * bound to no session, and the next renewal tries again.
 */
async function leaseTerms(
  context: AnyContext,
  { stationId, lease }: StationState,
  lifetimeSeconds: number | undefined,
): Promise<LeaseTerms> {
  const { caller, deps } = context;
  const { sessionId, expiresAtMs } = caller;
  const lifetimeMs = lifetimeSeconds === undefined ? undefined : lifetimeSeconds * 1_000;
  const session = { sessionId, expiresAtMs };
  if (lease?.sessionId === sessionId) return { lifetimeMs, session };
  try {
    await deps.bus.call(bindStation, { caller, sessionId, stationId }, LIMITS.bindStationMs);
    return { lifetimeMs, session };
  } catch (error) {
    if (error instanceof UnavailableError) {
      deps.log.warn({ stationId, sessionId }, "a lease is bound to no session, because the registry does not answer");
      return { lifetimeMs: Math.min(lifetimeMs ?? LIMITS.unboundLeaseMs, LIMITS.unboundLeaseMs) };
    }
    throw asSessionRefusal(error);
  }
}

type LeaseCommand = Extract<StationCommand, { type: "lease_acquire" | "lease_renew" | "lease_release" }>;

async function moveLease(context: AnyContext, { stationId }: StationState, command: LeaseCommand): Promise<Reply> {
  const { caller, deps } = context;
  // A renewal counts from now, however often it is repeated: it has no key.
  const isRenewal = command.type === "lease_renew";
  const commandId = isRenewal ? `lease_renew:${randomUUID()}` : sessionCommandId(context, command.type, stationId);
  const asked = deps.bus.command(stationId, { commandId, actor: cashierActor(context), command });
  const { reply } = await asked.catch((error: unknown) => {
    throw asSessionRefusal(error);
  });
  if (reply.type !== "lease") throw new Error(`A station answered ${command.type} with ${reply.type}.`);
  return ok(stationLeaseWire(reply, { userId: caller.userId, nowMs: deps.nowMs() }));
}

/** The session ended while its request was under way: what any later request of it is refused with. */
function asSessionRefusal(error: unknown): unknown {
  const code = error instanceof Refusal ? error.code : error instanceof RefusedError ? error.refusal.code : undefined;
  return code === "session_ended" ? new Refusal("session_invalid") : error;
}
