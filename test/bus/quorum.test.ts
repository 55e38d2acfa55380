/** How a process checks that its NATS server reaches a majority. `test/cluster/majority.test.ts` tests it with real servers. */
import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "nats";
import { afterEach, expect, it, vi } from "vitest";
import { QuorumWatch, ServerChoice } from "../../services/bus/quorum.ts";
import { notReady } from "../../services/runtime/run-services.ts";
import { QUIET } from "../support/quiet-log.ts";

/** The time of two checks without an answer, and of another check. */
const UNANSWERED = { timeout: 3_000, interval: 20 };
/** The time of one check with an answer. */
const ANSWERED = { timeout: 1_200, interval: 20 };
/** Without a majority, a process may leave its server again after three seconds. */
const LEFT_AGAIN_MS = 3_500;

let watch: QuorumWatch | undefined;
afterEach(() => watch?.stop());

it("a majority stops and answers again: the process is not ready meanwhile, and stays at the server", async () => {
  let answers = false;
  let left = 0;
  const nc = {
    info: { cluster: "test" },
    getServer: () => "n0",
    getServers: () => ["n0", "n1"],
    reconnect: async () => void (left += 1),
    request: async () => {
      if (!answers) throw new Error("There is no majority.");
      return { json: () => ({ seq: 1 }) };
    },
  } as unknown as NatsConnection;
  watch = new QuorumWatch({ nc, isUp: () => true, choice: new ServerChoice(), log: QUIET, onSilence: () => undefined });
  const started = watch;
  const reasons = () => notReady({ stopping: new AbortController().signal }, { hasQuorum: () => started.hasQuorum() });
  expect(reasons()).toEqual([]);
  await vi.waitFor(() => expect(left).toBe(1), UNANSWERED);
  expect(reasons()).toEqual(["bus"]);
  // The next server does not answer two checks either, but the process must not leave it so soon.
  await delay(2_000);
  expect([left, reasons()]).toEqual([1, ["bus"]]);
  answers = true;
  await vi.waitFor(() => expect(reasons()).toEqual([]), ANSWERED);
  await delay(LEFT_AGAIN_MS - 2_000);
  expect(left).toBe(1);
});
