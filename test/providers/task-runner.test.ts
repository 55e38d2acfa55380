/** More tasks at once than a process works on: the others wait in the process, and do not wait for the end of their claim. */
import { beforeAll, expect, test } from "vitest";
import type { Database } from "../../services/db/pool.ts";
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import { addProviderMetrics } from "../../services/providers/metrics.ts";
import { startTaskRunner } from "../../services/providers/task-runner.ts";
import { createLog } from "../../services/runtime/log.ts";
import { openClone } from "../support/open-clone.ts";
import { waitFor } from "../support/wait-for.ts";

let database: Database;
beforeAll(async () => {
  const clone = await openClone({ maxConnections: 3 });
  database = clone.sql;
  return clone.stop;
});

test("many tasks of both lanes at once: the waiting ones begin when others have ended, in order and each once", async () => {
  const { questionsAtOnce, commandsAtOnce } = PROVIDER_LIMITS;
  // Requests to one kind of provider get half of their lane's slots.
  const tasksAtOnce = questionsAtOnce / 2 + commandsAtOnce;
  const begun: number[] = [];
  let most = 0;
  let atWork = 0;
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const runner = startTaskRunner({
    database,
    log: createLog({ service: "test", level: "silent" }),
    metrics: addProviderMetrics(undefined),
    run: async ({ intentId }) => {
      begun.push(intentId);
      atWork += 1;
      most = Math.max(most, atWork);
      await released;
      atWork -= 1;
      return { outcome: "settled" };
    },
  });
  const isPoll = (intentId: number): boolean => intentId % 2 === 0;
  const ids = Array.from({ length: tasksAtOnce * 3 }, (_, index) => index + 1);
  for (const intentId of ids)
    runner.start({
      intentId,
      kind: isPoll(intentId) ? "poll" : "confirm",
      configId: intentId,
      providerKind: "sandbox",
      detail: {},
      attempts: 1,
      createdAt: new Date(),
    });
  await waitFor("the tasks that have a slot", () => begun.length >= tasksAtOnce);
  release();
  await waitFor("every task was begun", () => begun.length >= ids.length);
  expect(most).toBe(tasksAtOnce);
  expect(begun.filter(isPoll)).toEqual(ids.filter(isPoll));
  expect(begun.filter((intentId) => !isPoll(intentId))).toEqual(ids.filter((intentId) => !isPoll(intentId)));
  await runner.stop();
});
