import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StationResponse } from "../../services/bus/messages/station-commands.ts";
import { stationCommandSubject } from "../../services/bus/subjects.ts";
import { eventually } from "../support/wait-for.ts";
import { CASHIER, type StationWorld, startStationWorld } from "./station-world.ts";

describe("an append with an unknown outcome", () => {
  let world: StationWorld;
  beforeAll(async () => {
    world = await startStationWorld();
  });
  afterAll(() => world.stop());

  it("is read back: the command gets its success, although the acknowledgement was lost", async () => {
    const { proxy } = await world.startHostBehindProxy();
    const stationId = await world.openStation();
    const lost = proxy.loseNext(`"stream":"STATION_LOG_0"`);
    // This is one request, which no client repeats.
    const request = { commandId: "test:release", actor: CASHIER, command: { type: "lease_release" } };
    const asked = world.bus.nc.request(stationCommandSubject(stationId), JSON.stringify(request), { timeout: 15_000 });
    await lost;
    const { reply, sequence } = (await asked).json<StationResponse>();
    expect(reply).toMatchObject({ ok: true, type: "lease", lease: null });
    const commits = await world.commits(stationId);
    expect(commits.filter((commit) => commit.commandId === "test:release")).toHaveLength(1);
    expect(commits.at(-1)?.sequence).toBe(sequence);
    // The host appends the next commit with the correct sequence.
    expect((await world.ask(stationId, { type: "lease_acquire" })).reply.ok).toBe(true);
    await world.stopHosts();
  });

  it("is never lost once acknowledged and never doubled, whenever nats-server is killed (I4)", {
    timeout: 180_000,
  }, async () => {
    await world.startHost();
    const stationIds = await Promise.all(Array.from({ length: 12 }, () => world.openStation()));
    const acknowledged: { stationId: number; commandId: string }[] = [];
    const traffic = new AbortController();
    const workers = stationIds.map(async (stationId) => {
      for (let count = 0; !traffic.signal.aborted; count += 1) {
        const commandId = `kill:${stationId}-${count}`;
        const type = count % 2 === 0 ? "lease_release" : "lease_acquire";
        // Like a client of the gateway, the worker repeats the command with the same id until it has an answer.
        for (;;) {
          const answer = await world.ask(stationId, { type }, { commandId }).catch(() => undefined);
          if (answer === undefined) continue;
          expect(answer.reply.ok).toBe(true);
          acknowledged.push({ stationId, commandId });
          break;
        }
      }
    });
    for (let round = 0; round < 3; round += 1) {
      const before = acknowledged.length;
      await eventually(() => acknowledged.length > before + 50, 30_000);
      await pause(Math.random() * 50);
      await world.nats.kill9();
      await world.nats.restart();
    }
    const before = acknowledged.length;
    await eventually(() => acknowledged.length > before + 50, 30_000);
    traffic.abort();
    await Promise.all(workers);
    for (const stationId of stationIds) {
      const commits = await world.commits(stationId);
      const versions = commits.map((commit) => commit.version);
      expect(versions).toEqual(versions.map((_, index) => (versions[0] ?? 0) + index));
      const inLog = commits.map((commit) => commit.commandId);
      expect(new Set(inLog).size).toBe(inLog.length);
      // The log keeps the newest 64 commits of a station. No acknowledged command may be missing among these.
      const promised = acknowledged.filter((entry) => entry.stationId === stationId).map((entry) => entry.commandId);
      const first = promised.findIndex((commandId) => inLog.includes(commandId));
      expect(promised.slice(first)).toEqual(inLog.filter((commandId) => commandId.startsWith("kill:")));
    }
  });
});
