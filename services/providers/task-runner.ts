/**
 * Runs the tasks that are due in PostgreSQL. A task that this process has just written runs at once. Due times are
 * stored in PostgreSQL only, so several processes share the work, and a process that ends loses no task.
 *
 * Calls sql only; service.ts passes `run` (tasks.ts). Every other part starts tasks through `ProvidersDeps.tasks`.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { ProviderKind } from "../bus/messages/provider-configs.ts";
import { Failures } from "../bus/outage.ts";
import type { Database } from "../db/pool.ts";
import { FairSlots } from "../runtime/fair-slots.ts";
import { forRequest, type Log } from "../runtime/log.ts";
import { within } from "../runtime/repeat.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import type { ProviderMetrics } from "./metrics.ts";
import type { PaymentRow } from "./sql/payments.ts";
import { finishTask, hasDueTask, postponeTask, type Task, type TaskKind, takeDueTasks } from "./sql/tasks.ts";

/** A task, with its payment if the writer of the task has just read it. */
export interface KnownTask extends Task {
  readonly payment?: PaymentRow;
}

export interface TaskRunner {
  /**
   * Runs a task that the caller has just written as claimed: at once, or when a slot is free. A task that waits too
   * long, or finds too many others waiting, is released: it is due again when its claim is over.
   */
  start(task: KnownTask): void;
  stop(): Promise<void>;
}

interface TaskRunnerOptions {
  readonly database: Database;
  readonly log: Log;
  readonly metrics: Pick<ProviderMetrics, "tasks">;
  readonly run: (task: KnownTask) => Promise<TaskResult>;
}

/**
 * A provider that does not answer must not delay a station's confirmation, so each lane has separate slots. Questions
 * are grouped by the kind of provider, whose configs call one server. Commands go to stations and have no groups.
 */
const LANES = [
  {
    kinds: ["poll", "withdraw"],
    asksProviders: true,
    atOnce: PROVIDER_LIMITS.questionsAtOnce,
    keptForNewConfigs: PROVIDER_LIMITS.questionsKeptForNewConfigs,
  },
  {
    kinds: ["confirm", "fail", "clear", "differ"],
    asksProviders: false,
    atOnce: PROVIDER_LIMITS.commandsAtOnce,
    keptForNewConfigs: 0,
  },
] as const satisfies readonly LaneShape[];

interface LaneShape {
  readonly kinds: readonly TaskKind[];
  readonly asksProviders: boolean;
  readonly atOnce: number;
  readonly keptForNewConfigs: number;
}

interface Lane extends LaneShape {
  readonly slots: FairSlots<number, ProviderKind>;
}

export function startTaskRunner({ database, log, metrics, run }: TaskRunnerOptions): TaskRunner {
  const stopping = new AbortController();
  const { signal } = stopping;
  const atWork = new Set<Promise<void>>();
  const failures = new Failures((...line) => log.warn(...line), "a task failed");
  const unwritten = new Failures((...line) => log.warn(...line), "a task's end could not be written");
  const lanes = LANES.map(
    (lane): Lane => ({
      ...lane,
      slots: new FairSlots({
        total: lane.atOnce,
        perKey: PROVIDER_LIMITS.tasksAtOncePerConfig,
        keptForNewKeys: lane.keptForNewConfigs,
        waiting: PROVIDER_LIMITS.tasksWaiting / LANES.length,
        waitingPerKey: PROVIDER_LIMITS.tasksWaitingPerConfig,
      }),
    }),
  );
  const laneOf = (kind: TaskKind): Lane => lanes.find(({ kinds }) => kinds.includes(kind)) as Lane;

  const start = (task: KnownTask): void => {
    if (signal.aborted) return;
    const work = forRequest(task.requestId, () => begin(task)).finally(() => atWork.delete(work));
    atWork.add(work);
  };
  const begin = async (task: KnownTask): Promise<void> => {
    const { slots, asksProviders } = laneOf(task.kind);
    const group = asksProviders ? task.providerKind : undefined;
    const release = await slots.acquire(task.configId, PROVIDER_LIMITS.taskWaitMs, group);
    if (release === undefined) return;
    try {
      await runAndStore(task);
    } finally {
      release();
    }
  };
  const runAndStore = async (task: KnownTask): Promise<void> => {
    const startedAtMs = performance.now();
    const result = await attempt(task);
    const facts = { intentId: task.intentId, kind: task.kind, attempts: task.attempts, ...result };
    log.info({ ...facts, tookMs: Math.round(performance.now() - startedAtMs) }, "provider task");
    try {
      if ("outcome" in result) await finishTask(database, task, result.outcome);
      else await postponeTask(database, task, result.retryInMs);
    } catch (error) {
      // The task is due again when its claim is over, and every kind of task may run twice.
      unwritten.failed(error, { intentId: task.intentId, kind: task.kind });
    }
  };
  const attempt = async (task: KnownTask): Promise<TaskResult> => {
    try {
      const result = await run(task);
      metrics.tasks.add({ kind: task.kind, outcome: "outcome" in result ? result.outcome : "postponed" });
      return result;
    } catch (error) {
      const { stationPauseMs: firstMs, longestStationPauseMs: longestMs } = PROVIDER_LIMITS;
      const retryInMs = backOffMs(task.attempts, { firstMs, longestMs });
      metrics.tasks.add({ kind: task.kind, outcome: "failed" });
      failures.failed(error, { intentId: task.intentId, kind: task.kind, retryInMs });
      return { retryInMs };
    }
  };
  const takeDue = async ({ kinds, slots, asksProviders, keptForNewConfigs }: Lane): Promise<void> => {
    if (slots.free <= 0) return;
    const ofAll = { limit: slots.free, keptForNewConfigs };
    const ofConfigs = { perConfig: PROVIDER_LIMITS.tasksAtOncePerConfig, ofConfigs: slots.freeOfHolders() };
    const ofKinds = { perKind: asksProviders ? slots.roomOfNewGroup : slots.free, ofKinds: slots.roomOfHolders() };
    const room = { kinds, ...ofAll, ...ofConfigs, ...ofKinds };
    for (const task of await takeDueTasks(database, room, PROVIDER_LIMITS.taskClaimMs)) start(task);
  };
  const poll = async (): Promise<void> => {
    let isLogged = false;
    while (!signal.aborted) {
      try {
        if (await hasDueTask(database)) for (const lane of lanes) await takeDue(lane);
        isLogged = false;
      } catch (error) {
        // Logged once and not at each poll: PostgreSQL may be away for hours.
        if (!isLogged && !signal.aborted) log.warn({ err: error }, "due tasks cannot be read now");
        isLogged = true;
      }
      await delay(PROVIDER_LIMITS.taskIntervalMs, undefined, { signal }).catch(() => undefined);
    }
  };
  const polling = poll();
  return {
    start,
    async stop() {
      stopping.abort();
      for (const { slots } of lanes) slots.stopWaiting();
      const ended = polling.then(() => Promise.allSettled(atWork));
      await within(ended, PROVIDER_LIMITS.drainTimeoutMs);
    },
  };
}

/** How one attempt at a task ended. */
export type TaskResult =
  /** Done; the outcome is for the log and for the analysis of a fault. */
  { readonly outcome: string } | { readonly retryInMs: number };

/**
 * The pause before the next attempt: doubling, limited, and with jitter, so that many tasks do not run again at once.
 */
export function backOffMs(attempts: number, bounds: { readonly firstMs: number; readonly longestMs: number }): number {
  const doubled = bounds.firstMs * 2 ** Math.min(attempts - 1, 30);
  return Math.min(doubled, bounds.longestMs) * (0.8 + Math.random() * 0.4);
}
