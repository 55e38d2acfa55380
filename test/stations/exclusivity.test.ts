import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PARTITION_COUNT } from "../../machines/partition.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { type StationWorld, startStationWorld } from "./station-world.ts";

describe("two hosts that both own every partition", () => {
  let world: StationWorld;
  beforeAll(async () => {
    world = await startStationWorld();
    const [first, second] = await world.startTwins();
    expect([first.host.owned().size, second.host.owned().size]).toEqual([PARTITION_COUNT, PARTITION_COUNT]);
  });
  afterAll(() => world.stop());

  it("append one commit after another, never two on the same (I5)", async () => {
    // A station keeps more replies than this, so the slower host finds each command done, however late it is.
    const commands = Array.from({ length: STATE_LIMITS.replies - 1 }, (_, index) => `test:acquire-${index}`);
    const stationIds = await Promise.all(Array.from({ length: 4 }, () => world.openStation()));
    await Promise.all(
      stationIds.map(async (stationId) => {
        for (let from = 0; from < commands.length; from += 5) {
          const batch = commands.slice(from, from + 5);
          await Promise.all(batch.map((commandId) => world.ask(stationId, { type: "lease_acquire" }, { commandId })));
        }
        const commits = await world.commits(stationId);
        expect(commits.map((commit) => commit.version)).toEqual(commits.map((_, index) => index + 1));
        const sequences = commits.map((commit) => commit.sequence);
        expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
        expect(commits).toHaveLength(commands.length + 2);
        expect(new Set(commits.map((commit) => commit.commandId)).size).toBe(commits.length);
      }),
    );
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
