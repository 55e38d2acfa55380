/**
 * Used by a service that has written outbox rows: it requests their delivery from the relay and receives the barrier.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "nats";
import { BUS_LIMITS } from "./limits.ts";
import type { Barrier } from "./messages/caller.ts";
import { flushOutbox } from "./messages/outbox.ts";
import { call } from "./operation.ts";
import { failuresOf } from "./outage.ts";
import { isNoResponders, RefusedError, UnavailableError } from "./refusals.ts";

interface FlushDeps {
  readonly nc: NatsConnection;
  readonly log: { warn(fields: object, message: string): void };
  /** How long the service waits for the relay in total. */
  readonly timeoutMs: number;
}

/**
 * Requests the delivery of these keys. Returns the positions at which the replicas show the changes. Without an answer
 * of the relay in time the barrier is `isUndelivered`: the rows are stored, and the relay delivers them later.
 */
export async function flushKeys(deps: FlushDeps, keys: readonly string[]): Promise<Barrier> {
  return mergeBarriers(await Promise.all(keys.map((key) => flushKey(deps, key))));
}

/** The highest position of each stream; undelivered when one barrier is. */
function mergeBarriers(barriers: readonly Barrier[]): Barrier {
  const merged: Barrier = { positions: {} };
  for (const { positions, isUndelivered } of barriers) {
    for (const [stream, sequence] of Object.entries(positions)) {
      merged.positions[stream] = Math.max(merged.positions[stream] ?? 0, sequence);
    }
    if (isUndelivered === true) merged.isUndelivered = true;
  }
  return merged;
}

async function flushKey({ nc, log, timeoutMs }: FlushDeps, key: string): Promise<Barrier> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await call(nc, flushOutbox, { key }, Math.max(1, deadlineMs - performance.now()));
    } catch (error) {
      if (!(error instanceof UnavailableError) && !(error instanceof RefusedError)) throw error;
      const hasTime = performance.now() + BUS_LIMITS.flushPauseMs < deadlineMs;
      if (!hasTime || !isNoResponders(error.cause)) {
        failuresOf(log, "answered before the relay delivered").failed(error, { key });
        return { positions: {}, isUndelivered: true };
      }
    }
    await delay(BUS_LIMITS.flushPauseMs);
  }
}
