/** Triggers an event by the owner's action that causes it, with the owner's API. */
import { z } from "zod";
import { CommandError } from "../command.ts";
import { pause } from "../http/pace.ts";
import type { ServiceTransport } from "../http/transport.ts";
import { clientLimits } from "../limits.ts";
import { openSession } from "../session.ts";
import type { Progress, Trigger } from "./arguments.ts";

interface TriggerDeps {
  readonly owner: Owner;
  /** The consumer of the event; undefined when there is only one consumer. */
  readonly consumerId: number | undefined;
  readonly signal: AbortSignal;
  readonly progress: Progress;
}

/** The owner's action that triggers each event. */
const ACTIONS: Readonly<Record<Trigger, (deps: TriggerDeps, consumer: Consumer) => Promise<void>>> = {
  "serving_task.offered": async (deps, consumer) => void (await offer(deps, consumer)),
  "serving_task.cancelled": async (deps, consumer) => {
    const { task_id: taskId } = await offer(deps, consumer);
    await deps.owner.cancel(taskId);
    deps.progress(`Cancelled task ${taskId}.`, { step: "cancelled", task_id: taskId });
  },
  "serving_task.expired": async (deps, consumer) => {
    const { task_id: taskId } = await offer(deps, consumer, clientLimits.shortestOfferSeconds);
    await untilExpired(deps, taskId);
  },
  "robotics.paused": async ({ owner, progress }, { filial_id: filialId }) => {
    // Pausing a paused filial would send no event.
    if (await owner.isPaused(filialId)) {
      await owner.resume(filialId);
      progress(`Resumed robotics at filial ${filialId}, where it was paused already.`, {
        step: "resumed",
        filial_id: filialId,
      });
    }
    await owner.pause(filialId);
    progress(`Paused robotics at filial ${filialId}; no task can be offered until you trigger robotics.resumed.`, {
      step: "paused",
      filial_id: filialId,
    });
  },
  "robotics.resumed": async ({ owner, progress }, { filial_id: filialId }) => {
    if (!(await owner.isPaused(filialId))) {
      await owner.pause(filialId);
      progress(`Paused robotics at filial ${filialId}, so that it can be resumed.`, {
        step: "paused",
        filial_id: filialId,
      });
    }
    await owner.resume(filialId);
    progress(`Resumed robotics at filial ${filialId}.`, { step: "resumed", filial_id: filialId });
  },
};

/** Throws `CommandError` when the consumer is not clear, or when the event does not happen. */
export async function trigger(deps: TriggerDeps, event: Trigger): Promise<void> {
  await ACTIONS[event](deps, await consumerOf(deps));
}

async function consumerOf({ owner, consumerId }: TriggerDeps): Promise<Consumer> {
  const consumers = await owner.consumers();
  const active = consumers.filter(({ status }) => status === "active");
  const chosen = consumerId === undefined ? active : consumers.filter((one) => one.consumer_id === consumerId);
  const [consumer, another] = chosen;
  if (consumer !== undefined && another === undefined) return consumer;
  if (consumerId !== undefined) throw new CommandError(`The owner has no robotics consumer ${consumerId}.`);
  if (consumer === undefined) throw new CommandError("The owner has no robotics consumer that is active.");
  const ids = active.map(({ consumer_id: id, name }) => `${id} (${name})`).join(", ");
  throw new CommandError(`Name the consumer of the event with --consumer-id: ${ids}.`);
}

async function offer({ owner, progress }: TriggerDeps, consumer: Consumer, validForSeconds?: number): Promise<Task> {
  const task = await owner.offer(consumer.consumer_id, validForSeconds);
  progress(`Offered task ${task.task_id} (number ${task.display_number}) to ${consumer.name}.`, {
    step: "offered",
    task_id: task.task_id,
    consumer_id: consumer.consumer_id,
  });
  return task;
}

async function untilExpired({ owner, signal, progress }: TriggerDeps, taskId: number): Promise<void> {
  const deadlineMs = performance.now() + clientLimits.expiryWaitMs;
  progress(`Waiting for task ${taskId} to expire.`, { step: "waiting", task_id: taskId });
  while (performance.now() < deadlineMs && !signal.aborted) {
    const { status } = await owner.task(taskId);
    if (status === "expired") return progress(`Task ${taskId} has expired.`, { step: "expired", task_id: taskId });
    if (status !== "offered") throw new CommandError(`Task ${taskId} did not expire: it is ${status}.`);
    await pause(clientLimits.expiryPollMs, signal);
  }
  throw new CommandError(`Task ${taskId} has not expired within ${clientLimits.expiryWaitMs / 1_000} seconds.`);
}

const consumerSchema = z.looseObject({
  consumer_id: z.int(),
  filial_id: z.int(),
  name: z.string(),
  status: z.string(),
});
const consumersSchema = z.looseObject({ robotics_consumers: z.array(consumerSchema), has_more: z.boolean() });
const taskSchema = z.looseObject({ task_id: z.int(), display_number: z.int(), status: z.string() });
const filialSchema = z.looseObject({ filial_id: z.int(), paused: z.boolean() });

type Consumer = z.infer<typeof consumerSchema>;
type Task = z.infer<typeof taskSchema>;
/** The parts of the owner's API that trigger events. */
export type Owner = Awaited<ReturnType<typeof logIn>>;

const REASON = { reason: "Triggered by a developer." };

/** Opens a session for one command. Throws `ServiceError` or `ServiceUnreachable`, as each of its functions does. */
export async function logIn(deps: {
  readonly transport: ServiceTransport;
  readonly details: { readonly email: string; readonly password: string };
  readonly signal: AbortSignal;
}) {
  const { read, act, logOut } = await openSession(deps);
  return {
    /** All of them, page by page. */
    async consumers(): Promise<readonly Consumer[]> {
      const all: Consumer[] = [];
      for (let hasMore = true; hasMore; ) {
        const path = `robotics-consumers/?limit=500&since_id=${all.at(-1)?.consumer_id ?? 0}`;
        const { robotics_consumers: page, has_more } = await read(path, consumersSchema);
        all.push(...page);
        hasMore = has_more && page.length > 0;
      }
      return all;
    },
    offer(consumerId: number, validForSeconds: number | undefined): Promise<Task> {
      const body = {
        consumer_id: consumerId,
        leg: "kitchen_to_table",
        manifest: [{ name: "Soup of the day", quantity: 2 }],
        destination: { name: "Table 12" },
        ...(validForSeconds === undefined ? {} : { valid_for_seconds: validForSeconds }),
      };
      return act("serving-tasks/", body, taskSchema);
    },
    task: (taskId: number): Promise<Task> => read(`serving-tasks/${taskId}/`, taskSchema),
    cancel: (taskId: number): Promise<Task> => act(`serving-tasks/${taskId}/cancel/`, REASON, taskSchema),
    isPaused: async (filialId: number) => (await read(`filials/${filialId}/robotics/`, filialSchema)).paused,
    pause: (filialId: number) => act(`filials/${filialId}/robotics/pause/`, REASON, filialSchema),
    resume: (filialId: number) => act(`filials/${filialId}/robotics/resume/`, REASON, filialSchema),
    logOut,
  };
}
