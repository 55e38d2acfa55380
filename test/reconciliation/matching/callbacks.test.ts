/** Lines whose payment has an issue of a callback already: one issue for both. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RunDatabase, type RunWorld, raiseOfCallback, startRunDatabase } from "./run-world.ts";

let running: RunDatabase;
beforeAll(async () => {
  running = await startRunDatabase();
});
afterAll(() => running.stop());

const outcomeOf = async ({ database, qrAccountId }: RunWorld) =>
  (
    await database<{ reason: string; issue_id: number }[]>`
      select o.reason, o.issue_id from line_outcomes o where o.account_id = ${qrAccountId}`
  ).map((row) => ({ ...row }));
const line = (reference: string, amountMinor: number) => ({
  name: reference,
  providerReference: reference,
  amountMinor,
});

describe("a callback's payment that has settled no order", () => {
  test("its issue explains the line, and the run raises no other", async () => {
    const world = await running.openWorld();
    const issueId = await raiseOfCallback(world, { kind: "late_money", reference: "tx-1", amountMinor: 1250 });
    await world.importLines(world.qrAccountId, [line("tx-1", 1250)]);
    expect((await world.run(world.qrAccountId)).kinds).toEqual([]);
    expect(await outcomeOf(world)).toEqual([{ reason: "late_money", issue_id: issueId }]);
  });

  test("a callback without a registered payment: the line gets its issue, also when the issue is closed", async () => {
    const world = await running.openWorld();
    const issueId = await raiseOfCallback(world, { kind: "unmatched_money", reference: "tx-1", amountMinor: 1250 });
    await world.importLines(world.qrAccountId, [line("tx-1", 1250)]);
    expect((await world.run(world.qrAccountId)).kinds).toEqual(["unmatched_money"]);
    expect(await outcomeOf(world)).toEqual([{ reason: "unmatched_money", issue_id: issueId }]);

    await world.database`
      update issues set status = 'closed', resolved_at = now(), resolved_by = 7, reason = 'Paid back.' where issue_id = ${issueId}`;
    await world.run(world.qrAccountId);
    const rows = await world.database`select status from issues where organization_id = ${world.organizationId}`;
    expect(rows.map((row) => row["status"])).toEqual(["closed"]);
  });

  test("another amount in the statement: the run finds `amount_over`", async () => {
    const world = await running.openWorld();
    await raiseOfCallback(world, { kind: "late_money", reference: "tx-1", amountMinor: 1250 });
    await world.importLines(world.qrAccountId, [line("tx-1", 1300)]);
    expect((await world.run(world.qrAccountId)).kinds).toEqual(["amount_over"]);
  });
});
