/**
 * Robots at work during a trial: their owner offers one serving task after the other, a robot accepts and completes it, and a
 * target receives the webhooks. Runs where `robotics` and `webhook-signer` do.
 */
import { setTimeout as delay } from "node:timers/promises";
import { verifyWebhook } from "../../clients/webhook-verifier.ts";
import { addFleet, offerBody, type TaskOnTheWire } from "../support/fleets.ts";
import type { Receiver } from "../webhook-signer/receiver.ts";
import type { ClusterWorld } from "./cluster-world.ts";
import { type History, NO_STATION } from "./history.ts";
import type { SideWork } from "./side-work.ts";
import { TrialClient, workUntil } from "./trial-client.ts";

const PATH = "/robots";
const NEXT_TASK_MS = 1_000;
/** The longest time that an offer may ask for: no task of a trial expires. */
const VALID_FOR_SECONDS = 3_600;
/** After the trial another process takes over and repeats a lost attempt, and later ones follow the schedule of attempts. */
const DELIVERED_WITHIN_MS = 60_000;
const POLL_MS = 500;

/** A task whose offer was acknowledged. */
interface Offered {
  readonly taskId: number;
  readonly atMs: number;
}

export async function startRobotWork(world: ClusterWorld, history: History, receiver: Receiver): Promise<SideWork> {
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
    offered.push({ taskId: task.task_id, atMs: Date.now() });
    await atFleet.send("accept", "POST", `serving-tasks/${task.task_id}/accept/`);
    await atFleet.send("complete", "POST", `serving-tasks/${task.task_id}/complete/`);
  };

  const missing = (): readonly Offered[] => {
    const arrived = new Set(receiver.at(PATH).map(({ body }) => taskIdOf(body)));
    return offered.filter(({ taskId }) => !arrived.has(taskId));
  };

  return {
    async run() {
      await workUntil(
        () => isStopped,
        async () => {
          await serve();
          await delay(NEXT_TASK_MS);
        },
      );
    },
    stop() {
      isStopped = true;
    },
    async judge() {
      const deadlineMs = performance.now() + DELIVERED_WITHIN_MS;
      while (missing().length > 0 && performance.now() < deadlineMs) await delay(POLL_MS);
      const received = receiver.at(PATH);
      const sentences = missing().map(({ taskId }) => `The webhook of serving task ${taskId} did not arrive.`);
      const ids = new Set(offered.map(({ taskId }) => taskId));
      if (ids.size !== offered.length) sentences.push("Two offers with different keys were answered with one task.");
      for (const { body, signature, atMs } of received) {
        const verdict = verifyWebhook({ header: signature, body, secrets: [secret], nowMs: atMs });
        if (verdict !== "valid") sentences.push(`A webhook was signed so that it is ${verdict}: ${body}.`);
        const taskId = taskIdOf(body);
        if (!ids.has(taskId)) sentences.push(`A webhook names task ${taskId}, which no answer to the owner names.`);
      }
      const firstAtMs = new Map(received.toReversed().map((one) => [taskIdOf(one.body), one.atMs]));
      const waits = offered.flatMap(({ taskId, atMs }) => (firstAtMs.get(taskId) ?? atMs) - atMs);
      const slowestMs = Math.max(0, ...waits);
      const summary = `${offered.length} serving tasks, ${received.length} webhooks, the slowest ${slowestMs} ms after its offer's answer`;
      return { sentences, summary };
    },
  };
}

function taskIdOf(body: string): number {
  return (JSON.parse(body) as { readonly payload: { readonly task_id: number } }).payload.task_id;
}
