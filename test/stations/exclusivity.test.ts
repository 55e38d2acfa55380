import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PARTITION_COUNT } from "../../machines/partition.ts";
import { type StationWorld, startStationWorld } from "./station-world.ts";

describe("two hosts that both believe they own everything", () => {
  let world: StationWorld;
  beforeAll(async () => {
    world = await startStationWorld();
    // Under one and the same name each takes the other's record for its own: the worst that leases can come to.
    const [first, second] = await Promise.all([
      world.startHost({ hostId: "twin" }),
      world.startHost({ hostId: "twin" }),
    ]);
    expect([first.host.owned().size, second.host.owned().size]).toEqual([PARTITION_COUNT, PARTITION_COUNT]);
  });
  afterAll(() => world.stop());

  it("append one commit after another, never two on the same (I5)", async () => {
    const stationId = await world.openStation();
    const commands = Array.from({ length: 40 }, (_, index) => ({ commandId: `test:acquire-${index}` }));
    for (let from = 0; from < commands.length; from += 8) {
      const batch = commands.slice(from, from + 8);
      await Promise.all(batch.map((options) => world.ask(stationId, { type: "lease_acquire" }, options)));
    }
    const commits = await world.commits(stationId);
    expect(commits.map((commit) => commit.version)).toEqual(commits.map((_, index) => index + 1));
    const sequences = commits.map((commit) => commit.sequence);
    expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
    expect(new Set(commits.map((commit) => commit.commandId)).size).toBe(commands.length + 2);
  });

  it("give one answer to one command, and commit it once (I4, I6)", async () => {
    const stationIds = await Promise.all(Array.from({ length: 10 }, () => world.openStation({ lease: false })));
    const rounds = stationIds.flatMap((stationId) => [1, 2, 3].map((round) => ({ stationId, round })));
    await Promise.all(
      rounds.map(async ({ stationId, round }) => {
        const actor = { kind: "cashier", id: round, name: `Cashier ${round}` } as const;
        const commandId = `test:acquire-${stationId}-${round}`;
        const ask = () => world.ask(stationId, { type: "lease_acquire" }, { commandId, actor });
        const answers = await Promise.all([ask(), ask(), ask()]);
        const replies = new Set(answers.map(({ reply }) => JSON.stringify(reply)));
        expect(replies.size).toBe(1);
        const commits = (await world.commits(stationId)).filter((commit) => commit.commandId === commandId);
        expect(commits).toHaveLength(answers[0]?.reply.ok ? 1 : 0);
        for (const { sequence } of commits) expect(answers[0]?.sequence).toBeGreaterThanOrEqual(sequence);
      }),
    );
    for (const stationId of stationIds) {
      const acquired = (await world.commits(stationId)).flatMap((commit) => commit.events);
      expect(acquired.filter((event) => event.type === "lease_acquired")).toHaveLength(1);
    }
  });
});
