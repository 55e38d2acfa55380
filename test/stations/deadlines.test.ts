import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eventually, pause, type StationWorld, startStationWorld } from "./station-world.ts";

/** Long enough that the deadline is not there before the test has done what comes before it. */
const LEASE_MS = 700;

describe("deadlines", () => {
  let world: StationWorld;
  beforeAll(async () => {
    world = await startStationWorld({ environment: { STATION_PASSIVATE_MS: "100" } });
  });
  afterEach(() => world.stopHosts());
  afterAll(() => world.stop());

  const lastEvents = async (stationId: number): Promise<string[]> =>
    (await world.newest(stationId)).events.map((event) => event.type);
  const leaseFor = async (lifetimeMs: number): Promise<number> => {
    const stationId = await world.openStation({ lease: false });
    await world.ask(stationId, { type: "lease_acquire", lifetimeMs });
    return stationId;
  };

  it("come about by themselves, at their time, of a station that is passive by then", async () => {
    const { host } = await world.startHost();
    const stationId = await leaseFor(LEASE_MS);
    await eventually(() => host.residentStates() === 0, 500);
    await eventually(async () => (await lastEvents(stationId)).includes("lease_lapsed"), LEASE_MS + 500);
  });

  it("that passed while no host was there come about when one is", async () => {
    await world.startHost();
    const stationIds = await Promise.all([leaseFor(LEASE_MS), leaseFor(LEASE_MS), leaseFor(LEASE_MS)]);
    await world.stopHosts();
    await pause(LEASE_MS);
    for (const stationId of stationIds) expect(await lastEvents(stationId)).toEqual(["lease_acquired"]);
    await world.startHost();
    await eventually(async () => {
      const events = await Promise.all(stationIds.map(lastEvents));
      return events.every((types) => types.includes("lease_lapsed"));
    }, 1_000);
  });

  it("that are still to come are kept by the next host", async () => {
    await world.startHost();
    const stationId = await leaseFor(2 * LEASE_MS);
    await world.stopHosts();
    await world.startHost();
    await pause(100);
    expect(await lastEvents(stationId)).toEqual(["lease_acquired"]);
    await eventually(async () => (await lastEvents(stationId)).includes("lease_lapsed"), 2 * LEASE_MS);
  });

  it("outlive a killed host and a killed nats-server", async () => {
    const killed = await world.startHostProcess();
    const stationId = await leaseFor(LEASE_MS);
    await killed.kill9();
    await world.nats.kill9();
    await world.nats.restart();
    await world.startHost();
    await eventually(async () => (await lastEvents(stationId)).includes("lease_lapsed"), 4_000);
  });

  it("move with a renewal: the old one does nothing", async () => {
    await world.startHost();
    const stationId = await leaseFor(LEASE_MS);
    await world.ask(stationId, { type: "lease_renew", lifetimeMs: 2 * LEASE_MS });
    await pause(LEASE_MS + 200);
    expect(await lastEvents(stationId)).toEqual(["lease_renewed"]);
    await eventually(async () => (await lastEvents(stationId)).includes("lease_lapsed"), 2 * LEASE_MS);
  });
});
