/** Sums that are too large for PostgreSQL's int8: a file of huge amounts is compared like any other, and blocks no account. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { FORMAT_LIMITS } from "../../../services/reconciliation/formats/limits.ts";
import { stateOf } from "../closings/closing-world.ts";
import { type Line, type RunDatabase, startRunDatabase } from "./run-world.ts";

let running: RunDatabase;
beforeAll(async () => {
  running = await startRunDatabase();
});
afterAll(() => running.stop());

const LINES = 12;
const payments: readonly Line[] = Array.from({ length: LINES }, (_, index) => ({
  name: `payment ${index}`,
  providerReference: `payment ${index}`,
  payoutReference: "payout 1",
}));

test("a payout whose payments add up to more than an int8: the difference is named, with its sum in the evidence", async () => {
  const world = await running.openWorld();
  const { database, organizationId, terminalAccountId: accountId } = world;
  const payout = { name: "payout", kind: "payout", amountMinor: -5, payoutReference: "payout 1" } as const;
  await world.importLines(accountId, [...payments, payout]);
  const most = "9".repeat(FORMAT_LIMITS.amountDigits);
  await database`
    update statement_lines set amount_minor = ${most}::text::bigint where account_id = ${accountId} and kind = 'payment'`;
  expect((await world.run(accountId)).lines).toMatchObject({ payout: "batch_total_mismatch" });
  const [issue] = await database`
    select amount_minor, evidence #>> '{statement,facts,differenceMinor}' as difference
    from issues where organization_id = ${organizationId} and kind = 'batch_total_mismatch'`;
  expect(issue).toEqual({ amount_minor: null, difference: (BigInt(most) * BigInt(LINES) - 5n).toString() });
});

test("payments of one payout that add up to more than an int8: the runs and the periods of the bank still work", async () => {
  const world = await running.openWorld();
  const { database, terminalAccountId: accountId } = world;
  const bankId = await world.addAccount("bank");
  await world.importLines(accountId, payments);
  await database`
    update statement_lines set amount_minor = ${"9".repeat(FORMAT_LIMITS.amountDigits)}::text::bigint where account_id = ${accountId}`;
  await world.importLines(bankId, [{ name: "credit", kind: "bank_credit", amountMinor: 7 }]);
  expect((await world.run(bankId)).lines).toEqual({ credit: "unmatched_money" });
  expect(await stateOf(world, bankId)).toContain("open");
});
