/** What the sandbox provider does by itself: deciding payments and delivering callbacks, from PostgreSQL alone. */
import { setTimeout as delay } from "node:timers/promises";
import { agentTrusting } from "../runtime/trusted-certificate.ts";
import { decideDue } from "./deciding.ts";
import { startDueCallbacks } from "./deliver-callbacks.ts";
import type { SandboxDeps } from "./deps.ts";
import { SANDBOX_LIMITS } from "./limits.ts";
import { deleteOldPayments } from "./sql/payments.ts";

export interface Work {
  stop(): Promise<void>;
}

export function startWork(deps: SandboxDeps): Work {
  const stopping = new AbortController();
  const { signal } = stopping;
  const connections = SANDBOX_LIMITS.callbacksAtOnce;
  const agent = agentTrusting(deps.certificateFile, { connections, pipelining: 1 });
  const atWork = new Set<Promise<void>>();
  const turn = async (): Promise<void> => {
    await decideDue(deps.database);
    for (const delivery of await startDueCallbacks(deps, agent, SANDBOX_LIMITS.callbacksAtOnce - atWork.size)) {
      const tracked = delivery.finally(() => atWork.delete(tracked));
      atWork.add(tracked);
    }
  };
  const run = async (): Promise<void> => {
    let lastReason = "";
    while (!signal.aborted) {
      try {
        await turn();
        lastReason = "";
      } catch (error) {
        // Told once and not at each turn: PostgreSQL may be away for hours.
        const reason = String(error);
        if (reason !== lastReason && !signal.aborted) deps.log.warn({ err: error }, "the sandbox provider cannot work");
        lastReason = reason;
      }
      await delay(SANDBOX_LIMITS.workIntervalMs, undefined, { signal }).catch(() => undefined);
    }
  };
  const running = run();
  const housekeeping = setInterval(() => void removeOld(deps), SANDBOX_LIMITS.housekeepingIntervalMs);
  housekeeping.unref();
  return {
    async stop() {
      stopping.abort();
      clearInterval(housekeeping);
      const timeout = delay(SANDBOX_LIMITS.drainTimeoutMs, undefined, { ref: false });
      await Promise.race([running.then(() => Promise.allSettled(atWork)), timeout]);
      await agent.destroy();
    },
  };
}

/** Never rejects: what fails now is done an hour later. */
async function removeOld({ database, log }: SandboxDeps): Promise<void> {
  const { retentionDays: olderThanDays, rowsPerRemoval: rows } = SANDBOX_LIMITS;
  try {
    let removed: number = rows;
    while (removed === rows) removed = await database.begin((sql) => deleteOldPayments(sql, { olderThanDays, rows }));
  } catch (error) {
    log.error({ err: error }, "old sandbox payments could not be removed");
  }
}
