/** A short form of the soak (`node test/bench/webhook-soak.ts`): the signer keeps nothing of what it has done. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Fleet, type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

let world: SignerWorld;
beforeAll(async () => {
  world = await startSignerWorld({ signers: 0 });
});
afterAll(() => world.stop());

const residentMegabytes = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024;

test("thousands of deliveries, good and bad, leave nothing behind in the process", async () => {
  // A heap of a working size at once, and a small one: what is kept would show soon.
  const signer = await world.addSignerProcess({ NODE_OPTIONS: "--max-semi-space-size=1 --max-old-space-size=80" });
  const fleets: Fleet[] = [];
  for (let at = 0; at < 10; at += 1) {
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, `/memory/${at}`);
    // Each tenth request fails, so that retries, and failures' records, take part.
    world.receiver.behave(`/memory/${at}`, () =>
      world.receiver.received.length % 10 === 0 ? 500 : { status: 200, body: "x".repeat(2_000) },
    );
    fleets.push(fleet);
  }
  let emitted = 0;
  const run = async (count: number): Promise<number> => {
    await world.emitMany(fleets, count);
    emitted += count;
    await waitFor(
      "the deliveries",
      async () => {
        const [row] = await world.database<[{ count: number }]>`
          select count(*)::int as count from webhook_deliveries where attempts > 0`;
        return row.count >= emitted;
      },
      40_000,
    );
    return residentMegabytes(signer.pid);
  };
  await run(4_000);
  const first = await run(1_500);
  const later: number[] = [];
  for (let turn = 0; turn < 3; turn += 1) later.push(await run(1_500));
  expect(Math.min(...later)).toBeLessThan(first * 1.05);
}, 120_000);
