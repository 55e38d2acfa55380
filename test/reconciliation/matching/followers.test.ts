/**
 * Followers are the accounts that show payments of the same stations. An import of one account starts runs of its followers,
 * after all more urgent runs. A change of an account that decides what its statements should show starts such runs too.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { changeStatementAccount } from "../../../services/reconciliation/accounts.ts";
import { runNext } from "../../../services/reconciliation/automatic-runs.ts";
import { rejectMatch } from "../../../services/reconciliation/matches.ts";
import { addRunMetrics } from "../../../services/reconciliation/metrics.ts";
import { QUIET } from "../../support/quiet-log.ts";
import { operator } from "../closings/closing-world.ts";
import { type RunDatabase, type RunWorld, startRunDatabase } from "./run-world.ts";

const ACCOUNTS = 6;
let running: RunDatabase;
let world: RunWorld;
let accounts: number[];
beforeAll(async () => {
  running = await startRunDatabase();
  world = await running.openWorld();
  accounts = [];
  for (let index = 0; index < ACCOUNTS; index += 1) {
    const accountId = await world.addAccount(`provider-${index}`);
    await world.importLines(accountId, [{ name: `first-${index}`, providerReference: `first-${index}` }]);
    accounts.push(accountId);
  }
  await world.database`delete from wanted_runs`;
});
afterAll(() => running.stop());

let files = 0;
const importInto = async (accountId: number | undefined): Promise<void> => {
  const name = `file-${(files += 1)}`;
  await world.importLines(accountId ?? 0, [{ name, providerReference: name }]);
};

/** Carries out the runs that are due. Returns their accounts, in order. */
async function runs(followerQuietMs: number): Promise<number[]> {
  const { database } = world;
  const [{ last }] = await database<
    [{ last: number }]
  >`select coalesce(max(run_id), 0) as last from reconciliation_runs`;
  const deps = { database, longDatabase: database, log: QUIET, metrics: addRunMetrics(undefined, database) };
  const busy = new Set<number>();
  while (await runNext(deps, { busy, quietMs: 0, followerQuietMs })) {
    // Repeats until no run is due.
  }
  const rows = await database<{ account_id: number }[]>`
    select account_id from reconciliation_runs where run_id > ${last} order by run_id`;
  return rows.map((row) => row.account_id);
}

test("files one after another: each starts the run of its account, and the followers run once at the end", async () => {
  const [first, second, third] = accounts;
  for (const accountId of [first, second, third]) {
    await importInto(accountId);
    expect(await runs(60_000)).toEqual([accountId]);
  }
  const followed = await runs(0);
  expect(followed.toSorted((a, b) => a - b)).toEqual(accounts.filter((accountId) => accountId !== third));
});

test("an import while followers wait: its account comes first", async () => {
  const [first] = accounts;
  const last = accounts.at(-1);
  await importInto(first);
  await importInto(last);
  expect((await runs(0)).slice(0, 2)).toEqual([first, last]);
});

test("imports that never pause: followers run after their longest wait", async () => {
  const [first, second] = accounts;
  await importInto(first);
  await world.database`update wanted_runs set first_wanted_at = now() - interval '11 minutes' where account_id = ${second ?? 0}`;
  expect(await runs(60_000)).toEqual([second, first]);
  await world.database`delete from wanted_runs`;
});

test("a shorter settlement delay: a run follows, and names the payment that is missing now", async () => {
  const own = await running.openWorld();
  const { database, terminalAccountId: accountId } = own;
  const change = (changed: { name?: string; settlementDelayDays?: number }) =>
    changeStatementAccount({ database } as Parameters<typeof changeStatementAccount>[0], {
      caller: operator(own),
      accountId,
      ...changed,
    });
  const wanted = () => database`
    select from_date::text, to_date::text from wanted_runs where account_id = ${accountId}`;
  await change({ settlementDelayDays: 30 });
  await own.importLines(accountId, [{ name: "stray", amountMinor: 77, providerReference: "stray" }]);
  await own.pay({ route: "attested_terminal", reference: "not-there" });
  expect((await own.run(accountId)).kinds).toEqual(["unmatched_money"]);
  await database`delete from wanted_runs`;
  await change({ name: "Terrace", settlementDelayDays: 30 });
  expect(await wanted(), "a name decides nothing").toEqual([]);
  await change({ settlementDelayDays: 0 });
  expect(await wanted()).toEqual([{ from_date: "2026-03-01", to_date: "2026-03-31" }]);
  await runs(0);
  const kinds = await database`
    select kind from issues where organization_id = ${own.organizationId} and status = 'open' order by kind`;
  expect(kinds.map(({ kind }) => kind as string)).toEqual(["missing_in_statement", "unmatched_money"]);
});

test("a rejected candidate of another account: that account gets a run too, and its payment is missing", async () => {
  const own = await running.openWorld();
  const { database, terminalAccountId: owner } = own;
  const beside = await own.addAccount("second terminals");
  const paymentKey = await own.pay({ route: "attested_terminal", reference: "not-there" });
  await own.importLines(owner, [{ name: "of the owner", amountMinor: 77, providerReference: "a" }]);
  await own.importLines(beside, [{ name: "of the other one", providerReference: "b" }]);
  expect((await own.run(beside)).kinds).toEqual(["reference_mismatch"]);
  expect((await own.run(owner)).kinds).toEqual(["unmatched_money"]);
  await database`delete from wanted_runs`;
  const [{ line_id: lineId }] = await database<[{ line_id: number }]>`
    select line_id from statement_lines where account_id = ${beside}`;
  await rejectMatch({ database }, { caller: operator(own), lineId, paymentKey, reason: "Another guest." });
  expect(await runs(0)).toEqual([beside, owner]);
  const missing = await database`
    select statement_account_id as owner from issues where subject_key = ${paymentKey} and kind = 'missing_in_statement'`;
  expect(missing.map((row) => ({ ...row }))).toEqual([{ owner }]);
});

test("a new last day: the account and its follower get a run", async () => {
  const own = await running.openWorld();
  const { database, terminalAccountId: accountId } = own;
  const beside = await own.addAccount("new terminals");
  for (const id of [accountId, beside])
    await own.importLines(id, [{ name: `${id}`, amountMinor: 77, providerReference: `${id}` }]);
  await database`delete from wanted_runs`;
  await changeStatementAccount({ database } as Parameters<typeof changeStatementAccount>[0], {
    caller: operator(own),
    accountId,
    lastDay: "2026-03-15",
  });
  const wanted = await database`select account_id from wanted_runs order by account_id`;
  expect(wanted.map(({ account_id }) => account_id as number)).toEqual([accountId, beside]);
});
