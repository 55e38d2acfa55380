/** A host on a machine with a wrong clock. Such a host once dropped every command without a log line. */
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { eventually } from "../support/wait-for.ts";
import { type StationWorld, startStationWorld } from "./station-world.ts";

const PROGRAM = join(import.meta.dirname, "..", "webhook-signer", "programs", "wrong-clock.mjs");
const LEASE_MS = 700;
/** The largest error of a measurement on a busy machine. */
const CLOCK_ERROR_MS = 250;
let world: StationWorld;

beforeAll(async () => {
  world = await startStationWorld();
});
afterEach(() => world.stopHosts());
afterAll(() => world.stop());

const startWrongHost = (wrongByMs: number) =>
  world.startHostProcess({
    NODE_OPTIONS: `${process.env["NODE_OPTIONS"] ?? ""} --import=${PROGRAM}`,
    WRONG_CLOCK_MS: String(wrongByMs),
  });

it.each([
  ["ahead", 10_000],
  ["behind", -10_000],
])(
  "host: its clock is 10 s %s, it serves commands and a lease lapses neither early nor late",
  async (_name, wrongByMs) => {
    const wrong = await startWrongHost(wrongByMs);
    const atWrongHost = await world.openStation({ lease: false });
    const handedOver = await world.openStation({ lease: false });
    const startedAt = performance.now();
    for (const stationId of [atWrongHost, handedOver]) {
      const startedAtMs = Date.now();
      const { reply } = await world.ask(stationId, { type: "lease_acquire", lifetimeMs: LEASE_MS });
      expect(reply.ok).toBe(true);
      const { atMs } = await world.newest(stationId);
      expect(atMs).toBeGreaterThan(startedAtMs - CLOCK_ERROR_MS);
      expect(atMs).toBeLessThan(Date.now() + CLOCK_ERROR_MS);
    }
    const hasLapsed = async (stationId: number): Promise<boolean> =>
      (await world.newest(stationId)).events.some(({ type }) => type === "lease_lapsed");
    await eventually(() => hasLapsed(atWrongHost));
    expect(performance.now() - startedAt).toBeGreaterThan(LEASE_MS - CLOCK_ERROR_MS);
    await eventually(() => hasLapsed(handedOver));

    // A lease from the host with the wrong clock lapses at its time at a host with a correct clock.
    const takenAt = performance.now();
    await world.ask(handedOver, { type: "lease_acquire", lifetimeMs: LEASE_MS });
    await wrong.stop();
    await world.startHost();
    await eventually(() => hasLapsed(handedOver));
    expect(performance.now() - takenAt).toBeGreaterThan(LEASE_MS - CLOCK_ERROR_MS);
  },
);
