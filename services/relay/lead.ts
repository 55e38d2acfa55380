/** What the one relay that delivers does, for as long as it is the one. */
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "../bus/connection.ts";
import type { Barrier } from "../bus/messages/caller.ts";
import { flushOutbox } from "../bus/messages/outbox.ts";
import { serve } from "../bus/operation.ts";
import { RefusedError } from "../bus/refusals.ts";
import type { Database } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";
import { barrierOf } from "./barrier.ts";
import { type DeliverDeps, deliverRow } from "./deliver-row.ts";
import type { Term } from "./election.ts";
import { KeyDeliverer } from "./key-deliverer.ts";
import { RELAY_LIMITS } from "./limits.ts";
import type { RelayFigures } from "./metrics.ts";
import { guardBus } from "./recovery/guard-bus.ts";
import { LeaseLostError } from "./sql/leader-lease.ts";
import { listDeliveredRows, listPendingKeys, listPendingRows, markDelivered } from "./sql/outbox-rows.ts";

export interface LeadDeps extends DeliverDeps {
  readonly sql: Database;
  readonly log: Log;
  readonly figures: RelayFigures;
  readonly bus: Bus;
}

/** Looks for undelivered rows, answers `relay.flush` and makes good what the bus has lost, until the term is over. */
export async function lead(deps: LeadDeps, term: Term): Promise<void> {
  const over = new AbortController();
  const signal = AbortSignal.any([term.signal, over.signal]);
  const { sql, log, figures } = deps;
  const deliverer = new KeyDeliverer({
    read: (key) => listPendingRows(sql, key, RELAY_LIMITS.rowsPerRead),
    deliver: async (row) => {
      try {
        return await deliverRow(deps, row);
      } catch (error) {
        figures.delivered(row.kind, "failed");
        throw error;
      }
    },
    mark: async (row, delivery) => {
      await markDelivered(sql, row.outboxId, delivery);
      figures.delivered(row.kind, delivery.failedReason === null ? "delivered" : "refused");
    },
    isLeader: () => !signal.aborted && term.isCurrent(),
    log,
  });
  // Only the relay that delivers listens. Each term has a queue of its own, so that every request reaches the newest one:
  // a stalled relay would keep its share of a common queue for minutes.
  const queue = `relay.${term.epoch}`;
  const flushes = serve({ nc: deps.nc, log, queue }, flushOutbox, ({ key }) => flush(sql, deliverer, key));
  const requireLease = (): void => {
    if (!term.isCurrent()) throw new LeaseLostError(term.epoch);
  };
  const guarding = guardBus({ ...deps, epoch: term.epoch, requireLease }, signal);
  try {
    await poll(deps, signal, deliverer);
  } finally {
    over.abort();
    const ended = Promise.all([flushes.drain(), deliverer.settled(), guarding]);
    await Promise.race([ended, delay(RELAY_LIMITS.drainTimeoutMs, undefined, { ref: false })]);
  }
}

/** What cannot be read now is read at the next turn. */
async function poll({ sql, log }: LeadDeps, signal: AbortSignal, deliverer: KeyDeliverer): Promise<void> {
  let after = "";
  let lastReason = "";
  while (!signal.aborted) {
    try {
      const keys = await listPendingKeys(sql, after, RELAY_LIMITS.keysPerPoll);
      for (const key of keys) {
        if (deliverer.canStart(key, Date.now())) void deliverer.deliver(key);
      }
      after = keys.length < RELAY_LIMITS.keysPerPoll ? "" : (keys.at(-1) ?? "");
      lastReason = "";
    } catch (error) {
      const reason = String(error);
      if (!signal.aborted && reason !== lastReason) log.warn({ err: error }, "the outbox could not be read");
      lastReason = reason;
    }
    await delay(RELAY_LIMITS.pollIntervalMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Delivers the key's rows now; refuses as `unavailable` when they could not all be delivered in time. */
async function flush(sql: Database, deliverer: KeyDeliverer, key: string): Promise<Barrier> {
  const timeout = delay(RELAY_LIMITS.flushTimeoutMs, false, { ref: false });
  if (!(await Promise.race([deliverer.deliver(key), timeout]))) {
    throw new RefusedError({ code: "unavailable", retryAfterMs: RELAY_LIMITS.longestRetryPauseMs });
  }
  const { barrierAgeMs: withinMs, barrierRows: limit } = RELAY_LIMITS;
  return barrierOf(await listDeliveredRows(sql, key, { withinMs, limit }));
}
