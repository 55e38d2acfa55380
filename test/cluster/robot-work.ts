/**
 * Robots at work during a trial: their owner offers one serving task after the other, a robot accepts and completes it, and a
 * target receives the webhooks. Runs where `robotics` and `webhook-signer` do.
 */
import { setTimeout as delay } from "node:timers/promises";
import { verifyWebhook } from "../../clients/webhook-verifier.ts";
import { addFleet, offerBody, type TaskOnTheWire } from "../support/fleets.ts";
import type { Received, Receiver } from "../webhook-signer/receiver.ts";
import type { ClusterWorld } from "./cluster-world.ts";
import { type History, NO_STATION } from "./history.ts";
import type { Pace } from "./pace.ts";
import type { SideWork } from "./side-work.ts";
import { TrialClient, workUntil } from "./trial-client.ts";

const PATH = "/robots";
/** The longest time that an offer may ask for: no task of a trial expires. */
const VALID_FOR_SECONDS = 3_600;
/** After the trial another process takes over and repeats a lost attempt, and later ones follow the schedule of attempts. */
const DELIVERED_WITHIN_MS = 60_000;
const POLL_MS = 500;

/** Tasks of one page. */
const PAGE = 500;

/** A task whose offer was acknowledged. The fleet accepts and completes each one before the work ends. */
interface Offered {
  readonly taskId: number;
  readonly atMs: number;
}

export async function startRobotWork(
  world: ClusterWorld,
  history: History,
  { receiver, pace }: { readonly receiver: Receiver; readonly pace: Pace },
): Promise<SideWork> {
  const { gateways, owner, filialId } = world;
  const fleet = await addFleet(gateways[0], owner, filialId, "Robots");
  const { secret } = await owner.good<{ secret: string }>("POST", "webhook-endpoints/", {
    body: { consumer_id: fleet.consumerId, url: receiver.url(PATH) },
  });
  const client = (caller: typeof owner | typeof fleet): TrialClient =>
    new TrialClient({ caller, gateways, history, stationId: NO_STATION });
  const atOwner = client(owner);
  const atFleet = client(fleet);
  const offered: Offered[] = [];
  let isStopped = false;

  const serve = async (): Promise<void> => {
    const request = {
      key: `task-${offered.length}`,
      body: offerBody(fleet.consumerId, { valid_for_seconds: VALID_FOR_SECONDS }),
    };
    const { body: task } = await atOwner.send<TaskOnTheWire>("offer", "POST", "serving-tasks/", request);
    const { task_id: taskId } = task;
    offered.push({ taskId, atMs: Date.now() });
    await atFleet.send("accept", "POST", `serving-tasks/${taskId}/accept/`);
    await atFleet.send("complete", "POST", `serving-tasks/${taskId}/complete/`);
  };

  /** The fleet's tasks as the owner reads them. */
  const readTasks = async (): Promise<readonly StoredTask[]> => {
    const tasks: StoredTask[] = [];
    for (let before = ""; ; ) {
      const path = `serving-tasks/?consumer_id=${fleet.consumerId}&limit=${PAGE}${before}`;
      const { body } = await atOwner.send<{ serving_tasks: StoredTask[]; has_more: boolean }>("read", "GET", path);
      tasks.push(...body.serving_tasks);
      if (!body.has_more) return tasks;
      before = `&before_id=${tasks.at(-1)?.task_id}`;
    }
  };

  return {
    async run() {
      await workUntil(
        () => isStopped,
        async () => {
          await serve();
          await delay(pace.nextTaskMs);
        },
      );
    },
    stop() {
      isStopped = true;
    },
    async judge() {
      const deadlineMs = performance.now() + DELIVERED_WITHIN_MS;
      const isMissing = (): boolean => missingWebhooks(offered, receiver.at(PATH)).length > 0;
      while (isMissing() && performance.now() < deadlineMs) await delay(POLL_MS);
      const received = receiver.at(PATH);
      const sentences = judgeRobots({ offered, received, secret, tasks: await readTasks() });
      const firstAtMs = new Map(received.toReversed().map((one) => [taskIdOf(one.body), one.atMs]));
      const waits = offered.flatMap(({ taskId, atMs }) => (firstAtMs.get(taskId) ?? atMs) - atMs);
      const slowestMs = Math.max(0, ...waits);
      const summary = `${offered.length} serving tasks, ${received.length} webhooks, the slowest ${slowestMs} ms after its offer's answer`;
      return { sentences, summary };
    },
  };
}

type StoredTask = Pick<TaskOnTheWire, "task_id" | "status">;
type Webhook = Pick<Received, "body" | "signature" | "atMs">;

/** A sentence for each offer without its webhook, each webhook that is wrong, and each task that is not completed. */
export function judgeRobots(of: {
  readonly offered: readonly Offered[];
  readonly received: readonly Webhook[];
  readonly secret: string;
  readonly tasks: readonly StoredTask[];
}): string[] {
  const { offered, received, secret, tasks } = of;
  const sentences = missingWebhooks(offered, received);
  const ids = new Set(offered.map(({ taskId }) => taskId));
  if (ids.size !== offered.length) sentences.push("Two offers with different keys were answered with one task.");
  for (const { body, signature, atMs } of received) {
    const verdict = verifyWebhook({ header: signature, body, secrets: [secret], nowMs: atMs });
    if (verdict !== "valid") sentences.push(`A webhook was signed so that it is ${verdict}: ${body}.`);
    const taskId = taskIdOf(body);
    if (!ids.has(taskId)) sentences.push(`A webhook names task ${taskId}, which no answer to the owner names.`);
  }
  const statuses = new Map(tasks.map(({ task_id, status }) => [task_id, status]));
  for (const taskId of ids) {
    const status = statuses.get(taskId) ?? "not there";
    if (status !== "completed") sentences.push(`Serving task ${taskId} was completed and is ${status}.`);
  }
  for (const { task_id } of tasks) {
    if (!ids.has(task_id)) sentences.push(`No answer to the owner names serving task ${task_id}.`);
  }
  return sentences;
}

function missingWebhooks(offered: readonly Offered[], received: readonly Webhook[]): string[] {
  const arrived = new Set(received.map(({ body }) => taskIdOf(body)));
  return offered.flatMap(({ taskId }) =>
    arrived.has(taskId) ? [] : [`The webhook of serving task ${taskId} did not arrive.`],
  );
}

function taskIdOf(body: string): number {
  return (JSON.parse(body) as { readonly payload: { readonly task_id: number } }).payload.task_id;
}
