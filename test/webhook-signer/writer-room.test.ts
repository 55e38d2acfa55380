/** More outcomes than the writer has room for, while a write waits for a lock: sending pauses, and the process continues. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SIGNER_LIMITS } from "../../services/webhook-signer/limits.ts";
import { type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

// `afterAll` restores the limits, because the worker's next file uses the same object.
const originalLimits = { ...SIGNER_LIMITS };
let world: SignerWorld;
beforeAll(async () => {
  Object.assign(SIGNER_LIMITS, { unwrittenOutcomes: 20, outcomesPerWrite: 5 });
  world = await startSignerWorld();
});
afterAll(async () => {
  await world.stop();
  Object.assign(SIGNER_LIMITS, originalLimits);
});

test("a lock: the process answers meanwhile, and every delivery is sent once the lock is released", async () => {
  const [held, busy] = [await world.openFleet(), await world.openFleet()];
  const { endpointId } = await world.addEndpoint(held, "/held");
  await world.addEndpoint(busy, "/busy");
  await world.emitMany([busy], 10);
  await waitFor("the first ones", () => world.receiver.at("/busy").length === 10);
  // Waits until the next outcome of the endpoint writes its row again: not every success is recorded there.
  await delay(SIGNER_LIMITS.successNoteMs + 200);
  // In this process's CPU time: other work on the machine does not count.
  const workedMs = (): number => process.cpuUsage().user / 1_000;
  let longestMs = 0;
  let lastMs = workedMs();
  const ticking = setInterval(() => {
    longestMs = Math.max(longestMs, workedMs() - lastMs);
    lastMs = workedMs();
  }, 10);
  await world.database.begin(async (sql) => {
    await sql`select from webhook_endpoints where endpoint_id = ${endpointId} for no key update`;
    await world.emitMany([held], 1);
    await waitFor("the one whose outcome waits", () => world.receiver.at("/held").length === 1);
    await world.emitMany([busy], 120);
    await delay(1_500);
  });
  await waitFor("all of them", () => world.receiver.at("/busy").length >= 130);
  clearInterval(ticking);
  expect(longestMs).toBeLessThan(1_000);
});
