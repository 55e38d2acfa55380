/** What the one relay that delivers does during its term. */
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { databaseOlder, readPulse, writePulse } from "../bus/installation.ts";
import type { Barrier } from "../bus/messages/caller.ts";
import { flushOutbox } from "../bus/messages/outbox.ts";
import { serve } from "../bus/operation.ts";
import { RefusedError } from "../bus/refusals.ts";
import type { Database } from "../db/pool.ts";
import { type Repeated, repeat } from "../runtime/repeat.ts";
import { barrierOf, KeyDeliverer } from "./delivery.ts";
import type { RelayDeps } from "./deps.ts";
import type { Term } from "./election.ts";
import { RELAY_LIMITS } from "./limits.ts";
import { recoverBus } from "./recovery/recovery.ts";
import { startSpreading } from "./spread-leaders.ts";
import { LeaseLostError } from "./sql/leader-lease.ts";
import { listDeliveredRows, listPendingKeys } from "./sql/outbox.ts";
import { raisePulse } from "./sql/pulse.ts";

/** Polls for undelivered rows, answers `relay.flushOutbox` and restores what the bus has lost, until the term is over. */
export async function lead(deps: RelayDeps, term: Term): Promise<void> {
  const { bus, sql, log } = deps;
  const { signal } = term;
  const deliverer = new KeyDeliverer(deps, () => term.isCurrent());
  // Only the relay that delivers subscribes. Each term has its own queue, so that every request reaches the newest term:
  // a stalled relay would keep its share of a common queue for minutes.
  const queue = `relay.${term.epoch}`;
  const flushes = serve({ nc: bus.nc, log, queue }, flushOutbox, ({ key }) => flush(sql, deliverer, key));
  const requireLease = (): void => {
    if (!term.isCurrent()) throw new LeaseLostError(term.epoch);
  };
  void recoverBus({ ...deps, epoch: term.epoch, requireLease }, signal);
  const spreading = startSpreading(deps);
  const polling = startPoll(deps, deliverer);
  const pulse = startPulse(deps, term);
  if (!signal.aborted) await once(signal, "abort");
  // Not awaited: a check of a stream without a leader takes long, and a past term writes no results (`epoch`).
  void spreading.stop();
  void pulse.stop();
  const ended = Promise.all([polling.stop(), flushes.drain(), deliverer.settled()]);
  await Promise.race([ended, delay(RELAY_LIMITS.drainTimeoutMs, undefined, { ref: false })]);
}

/** Raises the database's pulse, and then writes it on the bus, where it later shows that a database was restored. */
function startPulse({ bus, sql, log, database, fail }: RelayDeps, term: Term): Repeated {
  return repeat({ everyMs: RELAY_LIMITS.pulseMs, what: "writing the database's pulse", log }, async () => {
    const onBus = await readPulse(bus);
    const pulse = await raisePulse(sql, term.epoch, onBus);
    if (pulse <= onBus) fail?.(databaseOlder(bus, database));
    else if (term.isCurrent()) await writePulse(bus, pulse);
  });
}

function startPoll({ sql, log }: RelayDeps, deliverer: KeyDeliverer): Repeated {
  const { pollIntervalMs: everyMs, keysPerPoll } = RELAY_LIMITS;
  let after = "";
  return repeat({ everyMs, what: "reading the outbox", log }, async () => {
    const keys = await listPendingKeys(sql, after, keysPerPoll);
    for (const key of keys) {
      if (deliverer.canStart(key, performance.now())) void deliverer.deliver(key);
    }
    after = keys.length < keysPerPoll ? "" : (keys.at(-1) ?? "");
  });
}

/** Delivers the key's rows now; refuses as `unavailable` when they could not all be delivered in time. */
async function flush(sql: Database, deliverer: KeyDeliverer, key: string): Promise<Barrier> {
  const timeout = delay(RELAY_LIMITS.flushTimeoutMs, false, { ref: false });
  if (!(await Promise.race([deliverer.deliver(key), timeout]))) {
    throw new RefusedError({ code: "unavailable", retryAfterMs: RELAY_LIMITS.longestRetryPauseMs });
  }
  return barrierOf(await listDeliveredRows(sql, key, RELAY_LIMITS.barrierAgeMs));
}
