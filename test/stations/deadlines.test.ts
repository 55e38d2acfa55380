import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/wait-for.ts";
import { type StationWorld, startStationWorld } from "./station-world.ts";

const LEASE_MS = 700;
/** Long enough that the hosts are stopped before the deadline, also on a busy machine. */
const LONG_LEASE_MS = 3_000;

describe("deadlines", () => {
  let world: StationWorld;
  beforeAll(async () => {
    world = await startStationWorld({ environment: { STATION_PASSIVATE_MS: "100" } });
  });
  afterEach(() => world.stopHosts());
  afterAll(() => world.stop());

  const lastEvents = async (stationId: number): Promise<string[]> =>
    (await world.newest(stationId)).events.map((event) => event.type);
  const hasLapsed = async (stationId: number): Promise<boolean> =>
    (await lastEvents(stationId)).includes("lease_lapsed");
  /** Reads from the log when the lease had its deadline, and when it lapsed. */
  const endOf = async (stationId: number): Promise<{ expiresAtMs: number; lapsedAtMs: number }> => {
    const commits = await world.commits(stationId);
    const lapsed = commits.filter(({ events }) => events.some(({ type }) => type === "lease_lapsed"));
    expect(lapsed).toHaveLength(1);
    const before = commits.findLast(({ state }) => state.lease !== null);
    return { expiresAtMs: before?.state.lease?.expiresAtMs ?? Number.NaN, lapsedAtMs: lapsed[0]?.atMs ?? Number.NaN };
  };
  const leaseFor = async (lifetimeMs: number): Promise<number> => {
    const stationId = await world.openStation({ lease: false });
    await world.ask(stationId, { type: "lease_acquire", lifetimeMs });
    return stationId;
  };

  it("a station that the host does not keep in memory: its lease lapses at its deadline, without a command", async () => {
    const { host } = await world.startHost();
    const stationId = await leaseFor(LEASE_MS);
    await eventually(() => host.residentStates() === 0);
    await eventually(() => hasLapsed(stationId));
    const { expiresAtMs, lapsedAtMs } = await endOf(stationId);
    expect(lapsedAtMs).toBeGreaterThanOrEqual(expiresAtMs);
  });

  it("a deadline passes while no host runs: the next host applies it", async () => {
    await world.startHost();
    const stationIds = await Promise.all([1, 2, 3].map(() => leaseFor(LONG_LEASE_MS)));
    await world.stopHosts();
    await pause(LONG_LEASE_MS);
    for (const stationId of stationIds) expect(await lastEvents(stationId)).toEqual(["lease_acquired"]);
    await world.startHost();
    await eventually(async () => {
      const events = await Promise.all(stationIds.map(lastEvents));
      return events.every((types) => types.includes("lease_lapsed"));
    });
  });

  it("a deadline that is still in the future at a hand-over: the next host applies it in time", async () => {
    await world.startHost();
    const stationId = await leaseFor(LONG_LEASE_MS);
    await world.stopHosts();
    expect(await lastEvents(stationId)).toEqual(["lease_acquired"]);
    await world.startHost();
    await eventually(() => hasLapsed(stationId));
    const { expiresAtMs, lapsedAtMs } = await endOf(stationId);
    expect(lapsedAtMs).toBeGreaterThanOrEqual(expiresAtMs);
  });

  it("a host and nats-server are killed: the next host applies the deadline", async () => {
    const killed = await world.startHostProcess();
    const stationId = await leaseFor(LEASE_MS);
    await killed.kill9();
    await world.nats.kill9();
    await world.nats.restart();
    await world.startHost();
    await eventually(() => hasLapsed(stationId));
  });

  it("a renewal moves the deadline: the old deadline has no effect", async () => {
    await world.startHost();
    const stationId = await leaseFor(LEASE_MS);
    expect((await world.ask(stationId, { type: "lease_renew", lifetimeMs: 2 * LEASE_MS })).reply.ok).toBe(true);
    const { lease } = (await world.newest(stationId)).state;
    await eventually(() => hasLapsed(stationId));
    const { expiresAtMs, lapsedAtMs } = await endOf(stationId);
    expect(expiresAtMs).toBe(lease?.expiresAtMs);
    expect(lapsedAtMs).toBeGreaterThanOrEqual(expiresAtMs);
  });
});
