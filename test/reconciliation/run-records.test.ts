/** What metrics show of runs, and how long the differences of runs are kept. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { deleteOldDifferences, endRun, getRun, insertRun } from "../../services/reconciliation/sql/runs.ts";
import { summarizeStatements } from "../../services/reconciliation/sql/summary.ts";
import { endDeadRuns } from "../../services/reconciliation/sql/wanted-runs.ts";
import { FIRST_DAY, LAST_DAY, type RunDatabase, type RunWorld, startRunDatabase } from "./matching/run-world.ts";

const DAY_MS = 24 * 3_600_000;

let running: RunDatabase;
beforeAll(async () => {
  running = await startRunDatabase();
});
afterAll(() => running.stop());

const differencesOf = async ({ database }: RunWorld, runId: number): Promise<number> =>
  (await database`select from run_differences where run_id = ${runId}`).count;
const age = async ({ database }: RunWorld, runId: number): Promise<void> => {
  await database`update reconciliation_runs set started_at = now() - interval '100 days' where run_id = ${runId}`;
};

describe("the summary of statements", () => {
  test("counts recent lines by the last run's result, and shows how far behind an account is", async () => {
    const world = await running.openWorld();
    const day = new Date(Date.now() - 3 * DAY_MS).toISOString().slice(0, 10);
    await world.pay({ reference: "a", amountMinor: 1000, day });
    const before = await summarizeStatements(world.database);
    await world.importLines(
      world.qrAccountId,
      [
        { name: "a", providerReference: "a", amountMinor: 1000, day },
        { name: "stray", providerReference: "b", amountMinor: 500, day },
        { name: "fee", kind: "fee", amountMinor: -5, day },
      ],
      { from: day, to: day },
    );
    const imported = await summarizeStatements(world.database);
    expect(imported.lines.not_run).toBe(before.lines.not_run + 3);
    expect(imported.oldestWantedSeconds).toBeGreaterThan(0);

    await world.run(world.qrAccountId, { from: day, to: day });

    const after = await summarizeStatements(world.database);
    expect(after.lines).toEqual({ matched: 1, differs: 1, rejected: 1, not_run: 0 });
    expect(after.lagSeconds).toBeGreaterThan((3 * DAY_MS) / 1_000);
    expect(after.oldestWantedSeconds, "the run was the wanted one").toBe(0);

    await world.database`update statement_accounts set last_day = ${day}::date where account_id = ${world.qrAccountId}`;
    expect((await summarizeStatements(world.database)).lagSeconds, "no later statement is awaited").toBe(0);
  });
});

describe("differences of old runs", () => {
  test("are deleted, except those of the newest run and of issues that wait for a person", async () => {
    const world = await running.openWorld();
    await world.importLines(world.qrAccountId, [{ name: "stray", providerReference: "b", amountMinor: 500 }]);
    const runs = [await world.run(world.qrAccountId), await world.run(world.qrAccountId)];
    for (const { runId } of runs) await age(world, runId);
    await deleteOldDifferences(world.database, 30, 100);
    expect(await Promise.all(runs.map(({ runId }) => differencesOf(world, runId)))).toEqual([1, 1]);

    await world.database`
      update issues set status = 'closed', resolved_at = now(), resolved_by = 7, reason = 'Dealt with.'
      where organization_id = ${world.organizationId}`;
    await deleteOldDifferences(world.database, 30, 100);
    expect(await Promise.all(runs.map(({ runId }) => differencesOf(world, runId)))).toEqual([0, 1]);
  });
});

describe("a run that counts as dead between its rollback and the record of its end", () => {
  test("gets the reason that its process records, and is never done", async () => {
    const { database, organizationId, qrAccountId: accountId } = await running.openWorld();
    const days = { fromDate: FIRST_DAY, toDate: LAST_DAY };
    const run = await insertRun(database, { organizationId, accountId, ...days, startedBy: 7 });
    const runId = run?.runId ?? 0;
    const ended = async () => (await getRun(database, { organizationId, runId }))?.failure;
    await database.begin((tx) => endDeadRuns(tx, "The process of the run has ended."));
    expect(await ended()).toBe("The process of the run has ended.");
    await endRun(database, runId, null);
    expect(await ended()).toBe("The process of the run has ended.");
    await endRun(database, runId, "The disk is full.");
    expect(await ended()).toBe("The disk is full.");
  });
});
