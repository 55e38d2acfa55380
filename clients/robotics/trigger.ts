/** Makes an event happen, for real: what the owner would do, done by the owner's API. */
import { clientLimits } from "../limits.ts";
import { pause } from "../pace.ts";
import type { Trigger } from "./arguments.ts";
import { CommandError } from "./command-error.ts";
import type { Consumer, Owner, Task } from "./owner.ts";

export interface TriggerDeps {
  readonly owner: Owner;
  /** Whose event; undefined when there is only one consumer. */
  readonly consumerId: number | undefined;
  readonly signal: AbortSignal;
  /** Prints one line for a person. */
  readonly say: (line: string) => void;
}

type Happening = (deps: TriggerDeps, consumer: Consumer) => Promise<void>;

const HAPPENINGS: Readonly<Record<Trigger, Happening>> = {
  "serving_task.offered": async (deps, consumer) => void (await offer(deps, consumer)),
  "serving_task.cancelled": async (deps, consumer) => {
    const { task_id: taskId } = await offer(deps, consumer);
    await deps.owner.cancel(taskId);
    deps.say(`Cancelled task ${taskId}.`);
  },
  "serving_task.expired": async (deps, consumer) => {
    const { task_id: taskId } = await offer(deps, consumer, clientLimits.shortestOfferSeconds);
    await untilExpired(deps, taskId);
  },
  "robotics.paused": async ({ owner, say }, { filial_id: filialId }) => {
    // Pausing what is paused would change nothing and send no event.
    if (await owner.isPaused(filialId)) {
      await owner.resume(filialId);
      say(`Resumed robotics at filial ${filialId}, where it was paused already.`);
    }
    await owner.pause(filialId);
    say(`Paused robotics at filial ${filialId}; no task can be offered until you trigger robotics.resumed.`);
  },
  "robotics.resumed": async ({ owner, say }, { filial_id: filialId }) => {
    if (!(await owner.isPaused(filialId))) {
      await owner.pause(filialId);
      say(`Paused robotics at filial ${filialId}, so that it can be resumed.`);
    }
    await owner.resume(filialId);
    say(`Resumed robotics at filial ${filialId}.`);
  },
};

/** Throws `CommandError` when it is not clear for whom, or when it does not happen. */
export async function trigger(deps: TriggerDeps, event: Trigger): Promise<void> {
  await HAPPENINGS[event](deps, await consumerOf(deps));
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
  throw new CommandError(`Say whose event with --consumer-id: ${ids}.`);
}

async function offer({ owner, say }: TriggerDeps, consumer: Consumer, validForSeconds?: number): Promise<Task> {
  const task = await owner.offer(consumer.consumer_id, validForSeconds);
  say(`Offered task ${task.task_id} (number ${task.display_number}) to ${consumer.name}.`);
  return task;
}

async function untilExpired({ owner, signal, say }: TriggerDeps, taskId: number): Promise<void> {
  const deadlineMs = performance.now() + clientLimits.expiryWaitMs;
  say(`Waiting for task ${taskId} to expire.`);
  while (performance.now() < deadlineMs && !signal.aborted) {
    const { status } = await owner.task(taskId);
    if (status === "expired") return say(`Task ${taskId} has expired.`);
    if (status !== "offered") throw new CommandError(`Task ${taskId} did not expire: it is ${status}.`);
    await pause(clientLimits.expiryLookMs, signal);
  }
  throw new CommandError(`Task ${taskId} has not expired within ${clientLimits.expiryWaitMs / 1_000} seconds.`);
}
