/**
 * Runs tasks: those that are due in PostgreSQL, and at once those that this process has just written. Due times stand in
 * PostgreSQL only, so several processes share the work and nothing due is lost with one of them.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Database } from "../../db/pool.ts";
import type { Log } from "../../runtime/log.ts";
import type { ProviderFigures } from "../figures.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import type { PaymentRow } from "../sql/payments.ts";
import { finishTask, postponeTask, type Task, takeDueTasks } from "../sql/tasks.ts";
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

export function startTaskRunner({ database, log, figures, run }: TaskRunnerOptions): TaskRunner {
  const stopping = new AbortController();
  const { signal } = stopping;
  const atWork = new Set<Promise<void>>();

  /** Taken by this process and not begun, oldest first. */
  const waiting: { readonly task: KnownTask; readonly sinceMs: number }[] = [];

  const start = (task: KnownTask): void => {
    if (signal.aborted) return;
    if (atWork.size < PROVIDER_LIMITS.tasksAtOnce) begin(task);
    else if (waiting.length < PROVIDER_LIMITS.tasksWaiting) waiting.push({ task, sinceMs: performance.now() });
  };
  const begin = (task: KnownTask): void => {
    const work = carryOut(task).finally(() => {
      atWork.delete(work);
      beginNext();
    });
    atWork.add(work);
  };
  const beginNext = (): void => {
    const oldestMs = performance.now() - PROVIDER_LIMITS.taskWaitMs;
    for (let next = waiting.shift(); next !== undefined && !signal.aborted; next = waiting.shift()) {
      if (next.sinceMs >= oldestMs) return begin(next.task);
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
  const look = async (): Promise<void> => {
    let isTold = false;
    while (!signal.aborted) {
      try {
        const room = PROVIDER_LIMITS.tasksAtOnce - atWork.size;
        if (room > 0) for (const task of await takeDueTasks(database, room, PROVIDER_LIMITS.taskClaimMs)) start(task);
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
      const timeout = delay(PROVIDER_LIMITS.drainTimeoutMs, undefined, { ref: false });
      await Promise.race([looking.then(() => Promise.allSettled(atWork)), timeout]);
    },
  };
}
