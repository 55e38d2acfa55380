/**
 * Runs tasks: those that are due in PostgreSQL, and at once those that this process has just written. Due times stand in
 * PostgreSQL only, so several processes share the work and nothing due is lost with one of them.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Database } from "../../db/pool.ts";
import { FairSlots } from "../../runtime/fair-slots.ts";
import type { Log } from "../../runtime/log.ts";
import type { ProviderFigures } from "../figures.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import type { PaymentRow } from "../sql/payments.ts";
import { finishTask, postponeTask, type Task, type TaskKind, takeDueTasks } from "../sql/tasks.ts";
import { backOffMs } from "./back-off.ts";
import type { TaskResult } from "./task-result.ts";

/** A task with its payment, when whoever wrote it has just held that. */
export interface KnownTask extends Task {
  readonly payment?: PaymentRow;
}

export interface TaskRunner {
  /**
   * Works on a task that the caller has just written as taken, at once or when others of this process have ended. What
   * waits for too long, or would make too many wait, is left: it is due again when its claim is over.
   */
  start(task: KnownTask): void;
  stop(): Promise<void>;
}

export interface TaskRunnerOptions {
  readonly database: Database;
  readonly log: Log;
  readonly figures: Pick<ProviderFigures, "tasks">;
  readonly run: (task: KnownTask) => Promise<TaskResult>;
}

/** A provider that does not answer must not delay a station's confirmation, so the two have slots of their own. */
const LANES: readonly (readonly TaskKind[])[] = [
  ["poll", "withdraw"],
  ["confirm", "fail", "clear", "differ"],
];

interface Lane {
  readonly kinds: readonly TaskKind[];
  readonly slots: FairSlots<number>;
}

export function startTaskRunner({ database, log, figures, run }: TaskRunnerOptions): TaskRunner {
  const stopping = new AbortController();
  const { signal } = stopping;
  const atWork = new Set<Promise<void>>();
  const lanes = LANES.map(
    (kinds): Lane => ({
      kinds,
      slots: new FairSlots({
        total: PROVIDER_LIMITS.tasksAtOnce / LANES.length,
        perKey: PROVIDER_LIMITS.tasksAtOncePerConfig,
        waiting: PROVIDER_LIMITS.tasksWaiting / LANES.length,
        waitingPerKey: PROVIDER_LIMITS.tasksWaitingPerConfig,
      }),
    }),
  );
  const laneOf = (kind: TaskKind): Lane => lanes.find(({ kinds }) => kinds.includes(kind)) as Lane;

  const start = (task: KnownTask): void => {
    if (signal.aborted) return;
    const work = begin(task).finally(() => atWork.delete(work));
    atWork.add(work);
  };
  const begin = async (task: KnownTask): Promise<void> => {
    const release = await laneOf(task.kind).slots.acquire(task.configId, PROVIDER_LIMITS.taskWaitMs);
    if (release === undefined) return;
    try {
      await carryOut(task);
    } finally {
      release();
    }
  };
  const carryOut = async (task: KnownTask): Promise<void> => {
    const startedAtMs = performance.now();
    const result = await attempt(task);
    const facts = { intentId: task.intentId, kind: task.kind, attempts: task.attempts, ...result };
    log.info({ ...facts, tookMs: Math.round(performance.now() - startedAtMs) }, "provider task");
    try {
      if ("outcome" in result) await finishTask(database, task, result.outcome);
      else await postponeTask(database, task, result.retryInMs);
    } catch (error) {
      // It is due again when the claim is over, and each kind of task may be done twice.
      log.warn({ err: error, intentId: task.intentId, kind: task.kind }, "a task's end could not be written");
    }
  };
  const attempt = async (task: KnownTask): Promise<TaskResult> => {
    try {
      const result = await run(task);
      figures.tasks.add({ kind: task.kind, outcome: "outcome" in result ? result.outcome : "postponed" });
      return result;
    } catch (error) {
      const { stationPauseMs: firstMs, longestStationPauseMs: longestMs } = PROVIDER_LIMITS;
      const retryInMs = backOffMs(task.attempts, { firstMs, longestMs });
      figures.tasks.add({ kind: task.kind, outcome: "failed" });
      log.warn({ err: error, intentId: task.intentId, kind: task.kind, retryInMs }, "a task failed");
      return { retryInMs };
    }
  };
  const takeDue = async ({ kinds, slots }: Lane): Promise<void> => {
    if (slots.free <= 0) return;
    const perConfig = PROVIDER_LIMITS.tasksAtOncePerConfig;
    const room = { kinds, limit: slots.free, perConfig, ofConfigs: slots.freeOfHolders() };
    for (const task of await takeDueTasks(database, room, PROVIDER_LIMITS.taskClaimMs)) start(task);
  };
  const look = async (): Promise<void> => {
    let isTold = false;
    while (!signal.aborted) {
      try {
        for (const lane of lanes) await takeDue(lane);
        isTold = false;
      } catch (error) {
        // Told once and not at each look: PostgreSQL may be away for hours.
        if (!isTold && !signal.aborted) log.warn({ err: error }, "due tasks cannot be read now");
        isTold = true;
      }
      await delay(PROVIDER_LIMITS.taskIntervalMs, undefined, { signal }).catch(() => undefined);
    }
  };
  const looking = look();
  return {
    start,
    async stop() {
      stopping.abort();
      for (const { slots } of lanes) slots.stopWaiting();
      const timeout = delay(PROVIDER_LIMITS.drainTimeoutMs, undefined, { ref: false });
      await Promise.race([looking.then(() => Promise.allSettled(atWork)), timeout]);
    },
  };
}
