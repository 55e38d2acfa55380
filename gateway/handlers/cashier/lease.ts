/** The station's lease: see who holds it, take it, keep it, give it back. */
import type { z } from "zod";
import type { leaseBodySchema } from "../../contract/cashier.ts";
import { sessionCommandId } from "../command-id.ts";
import { ok, type Reply, type SessionContext, type SessionHandler } from "../context.ts";
import { cashierActor, ownStation } from "../own-station.ts";
import { leaseWire } from "./lease-wire.ts";

type LeaseBody = z.infer<typeof leaseBodySchema>;
type LeaseCommand = "lease_acquire" | "lease_renew" | "lease_release";

export const getLease: SessionHandler = async (context) => {
  const { lease } = await ownStation(context);
  return ok({ lease: leaseWire(lease, { userId: context.caller.userId, nowMs: context.deps.nowMs() }) });
};

/** Refusals: `station_leased` with the holder's name as `reason`, `station_closed`. */
export const acquireLease: SessionHandler<LeaseBody> = (context) => moveLease(context, "lease_acquire", context.body);

/** Refusals: `lease_required` when it has lapsed, `station_leased` when somebody else holds it. */
export const renewLease: SessionHandler<LeaseBody> = (context) => moveLease(context, "lease_renew", context.body);

/** Releasing a free station is no error. Refusal: `station_leased`. */
export const releaseLease: SessionHandler = (context) => moveLease(context, "lease_release", {});

async function moveLease(
  context: SessionContext<unknown, unknown>,
  type: LeaseCommand,
  body: LeaseBody,
): Promise<Reply> {
  const { stationId } = await ownStation(context);
  const lifetimeMs = body.lifetime_seconds === undefined ? undefined : body.lifetime_seconds * 1_000;
  const { reply } = await context.deps.bus.command(stationId, {
    commandId: sessionCommandId(context, type, stationId),
    actor: cashierActor(context),
    command: type === "lease_release" ? { type } : { type, lifetimeMs },
  });
  const lease = reply.type === "lease" ? reply.lease : null;
  return ok({ lease: leaseWire(lease, { userId: context.caller.userId, nowMs: context.deps.nowMs() }) });
}
