/** What a service does after it has written outbox rows: it asks the relay to deliver them now, and learns how far that went. */
import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "nats";
import { BUS_LIMITS } from "./limits.ts";
import type { Barrier } from "./messages/caller.ts";
import { flushOutbox } from "./messages/outbox.ts";
import { call } from "./operation.ts";
import { isNoResponders, RefusedError, UnavailableError } from "./refusals.ts";

export interface FlushDeps {
  readonly nc: NatsConnection;
  readonly log: { warn(fields: object, message: string): void };
  /** How long the service waits for the relay in all. */
  readonly timeoutMs: number;
}

/**
 * Has the relay deliver these keys now and returns how far the replicas must come to show it. Without the relay's answer in
 * time the barrier is `isUndelivered`: the rows are stored, and the relay delivers them later by itself.
 */
export async function flushKeys(deps: FlushDeps, keys: readonly string[]): Promise<Barrier> {
  return mergeBarriers(await Promise.all(keys.map((key) => flushKey(deps, key))));
}

/** The furthest of each position; undelivered when one of them is. */
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
        log.warn({ key, reason: error.message }, "answered before the relay delivered");
        return { positions: {}, isUndelivered: true };
      }
    }
    await delay(BUS_LIMITS.flushPauseMs);
  }
}
