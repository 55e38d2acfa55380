/**
 * The signer keeps no memory of past deliveries. The short form finds a leak of half a kilobyte for each, the long form
 * of `npm run soak` one of a quarter (MEMORY_TURN=500). `node test/bench/webhook-soak.ts` has an even load for minutes.
 */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { median } from "../support/percentile.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { type Fleet, type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

const folder = temporaryFolder("heap");
const HEAP_FILE = join(folder.path, "bytes");
const PROGRAM = join(import.meta.dirname, "programs", "heap-on-signal.mjs");

/** Deliveries between two measurements. */
const TURN = Number(process.env["MEMORY_TURN"] ?? 250);

let world: SignerWorld;
beforeAll(async () => {
  world = await startSignerWorld({ signers: 0 });
});
afterAll(async () => {
  await world.stop();
  folder.remove();
});

const residentMegabytes = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024;

test("thousands of deliveries, good and bad: the process keeps no memory of them", async () => {
  // A heap that has its final size at once and is small, so that a leak shows soon.
  const bundles = process.env["NODE_OPTIONS"] ?? "";
  const NODE_OPTIONS = `${bundles} --max-semi-space-size=1 --max-old-space-size=80 --import=${PROGRAM}`;
  const signer = await world.addSignerProcess({ NODE_OPTIONS, HEAP_FILE });
  const fleets: Fleet[] = [];
  for (let at = 0; at < 10; at += 1) {
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, `/memory/${at}`);
    // Each tenth request fails, so that there are retries and records of failures.
    world.receiver.behave(`/memory/${at}`, () =>
      world.receiver.received.length % 10 === 0 ? 500 : { status: 200, body: "x".repeat(2_000) },
    );
    fleets.push(fleet);
  }
  let emitted = 0;
  const run = async (count: number): Promise<{ heap: number; resident: number }> => {
    await world.emitMany(fleets, count);
    emitted += count;
    await waitFor(
      "the deliveries",
      async () => {
        // Queries the database only after all have arrived: until then the database has enough other work.
        if (world.receiver.received.length < emitted) return false;
        const [row] = await world.database<[{ count: number }]>`
          select count(*)::int as count from webhook_deliveries where attempts > 0`;
        return row.count >= emitted;
      },
      40_000,
    );
    rmSync(HEAP_FILE, { force: true });
    signer.signal("SIGUSR2");
    const heap = await waitFor("what is left", () => {
      try {
        return Number(readFileSync(HEAP_FILE, "utf8")) / 1_048_576;
      } catch {
        return undefined;
      }
    });
    return { heap, resident: residentMegabytes(signer.pid) };
  };
  // After fewer deliveries the process still takes memory for compiled code: up to 2 % of it in one step.
  await run(20 * TURN);
  const turns: { heap: number; resident: number }[] = [];
  for (let turn = 0; turn < 8; turn += 1) turns.push(await run(TURN));
  const growth = (of: (turn: { heap: number; resident: number }) => number): number =>
    median(turns.slice(-3).map(of)) / median(turns.slice(0, 3).map(of));
  // Five turns lie between the two medians. A heap of 25 MB that keeps 0.65 MB of them grows by more than this.
  expect(growth((turn) => turn.heap)).toBeLessThan(1.025);
  expect(growth((turn) => turn.resident)).toBeLessThan(1.025);
}, 180_000);
