/** Decisions of people about matches, also two at once, and the runs that follow automatically. */
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { runNext } from "../../../services/reconciliation/automatic-runs.ts";
import { RUN_LIMITS } from "../../../services/reconciliation/limits.ts";
import { confirmMatch, listCandidates, listMatches, rejectMatch } from "../../../services/reconciliation/matches.ts";
import { addRunMetrics } from "../../../services/reconciliation/metrics.ts";
import { HANGS } from "../../support/hangs.ts";
import { QUIET } from "../../support/quiet-log.ts";
import { operator, refusalOf } from "../closings/closing-world.ts";
import { lineOf, type RunDatabase, type RunWorld, raiseOfCallback, startRunDatabase } from "./run-world.ts";

const REASON = "Checked with the slip.";

let running: RunDatabase;
beforeAll(async () => {
  running = await startRunDatabase();
});
afterAll(() => running.stop());
// Removes the rows of the previous test.
beforeEach(async () => {
  await running.database`delete from wanted_runs`;
});

async function lineIds(world: RunWorld, accountId: number): Promise<number[]> {
  const rows = await world.database<{ line_id: number }[]>`
    select line_id from statement_lines where account_id = ${accountId} order by amount_minor`;
  return rows.map(({ line_id: lineId }) => lineId);
}

/** Carries out the requested runs at once. Returns how many there were. */
async function runWanted({ database }: RunWorld, isShort = false): Promise<number> {
  const metrics = addRunMetrics(undefined, database);
  const deps = { database, longDatabase: database, log: QUIET, metrics, isShortOfSpace: () => isShort };
  const busy = new Set<number>();
  let turns = 0;
  while (await runNext(deps, { busy, quietMs: 0, followerQuietMs: 0 })) turns += 1;
  return turns - busy.size;
}

describe("candidates", () => {
  test("candidates of a line: listed with scores and reasons, the best first; another organization gets none", async () => {
    const world = await running.openWorld();
    const near = await world.pay({ reference: "a", amountMinor: 1000, day: "2026-03-09" });
    const far = await world.pay({ reference: "b", amountMinor: 1000, day: "2026-03-07" });
    await world.importLines(world.qrAccountId, [lineOf("wrong", 1000)]);
    await world.run(world.qrAccountId);

    const page = { caller: operator(world), sinceId: 0, limit: 10 };
    const { lines, hasMore } = await listCandidates(world, page);

    expect(hasMore).toBe(false);
    expect(lines).toMatchObject([
      {
        line: { amountMinor: "1000", kind: "payment" },
        kind: "reference_mismatch",
        candidates: [
          { payment: { paymentKey: near, reference: "a", amountMinor: "1000" }, score: 56, explanation: { date: 16 } },
          { payment: { paymentKey: far }, score: 48, explanation: { daysApart: 3 } },
        ],
      },
    ]);
    const other = await running.openWorld();
    expect((await listCandidates(other, { ...page, caller: operator(other) })).lines).toEqual([]);
  });

  test("a confirmed candidate: the next run, which starts automatically, matches it and ends its issue", async () => {
    const world = await running.openWorld();
    const payment = await world.pay({ reference: "a", amountMinor: 1000 });
    await world.importLines(world.qrAccountId, [lineOf("wrong", 1000)]);
    await world.run(world.qrAccountId);
    const ids = await lineIds(world, world.qrAccountId);
    await runWanted(world);
    const request = { caller: operator(world), lineIds: ids, paymentKeys: [payment], reason: REASON };

    const first = await confirmMatch(world, request);

    expect(first.decisions).toMatchObject([{ decision: "confirmed", payment: { paymentKey: payment }, decidedBy: 7 }]);
    expect(await confirmMatch(world, request)).toEqual(first);
    expect(await runWanted(world)).toBe(1);
    const { matches } = await listMatches(world, { caller: operator(world), limit: 10 });
    expect(matches).toMatchObject([
      { tier: "confirmed", lines: [{ lineId: ids[0] }], payments: [{ paymentKey: payment }] },
    ]);
    const [issue] = await world.database`select status from issues where organization_id = ${world.organizationId}`;
    expect(issue?.["status"]).toBe("ended");
    const log = await world.database`
      select action, subject_kind from provider_events where organization_id = ${world.organizationId} and action like 'match_%'`;
    expect(log.map((row) => ({ ...row }))).toContainEqual({
      action: "match_confirmed",
      subject_kind: "statement_line",
    });
  });

  test("several lines for one payment, or one line for several: confirmed only with equal sums", async () => {
    const world = await running.openWorld();
    const whole = await world.pay({ reference: "whole", amountMinor: 3000 });
    const parts = [
      await world.pay({ reference: "p1", amountMinor: 400 }),
      await world.pay({ reference: "p2", amountMinor: 500 }),
    ];
    await world.importLines(world.qrAccountId, [lineOf("x", 900), lineOf("y", 1000), lineOf("z", 2000)]);
    await world.run(world.qrAccountId);
    const [x = 0, y = 0, z = 0] = await lineIds(world, world.qrAccountId);
    const confirm = (ids: number[], paymentKeys: string[]) =>
      confirmMatch(world, { caller: operator(world), lineIds: ids, paymentKeys, reason: REASON });

    expect(await refusalOf(confirm([y], [whole]))).toBe("sums_differ");
    expect(await refusalOf(confirm([x, y], [whole, ...parts]))).toBe("several_on_both_sides");
    expect(await refusalOf(confirm([y], ["transaction:999999999"]))).toBe("not_found");
    await confirm([y, z], [whole]);
    await confirm([x], parts);

    const outcome = await world.run(world.qrAccountId);
    expect(outcome).toMatchObject({ kinds: [], lines: { x: "matched", y: "matched", z: "matched" } });
  });

  test("money that pays an order, in parts: confirmed as the payment of that order only", async () => {
    const world = await running.openWorld();
    const issueId = await raiseOfCallback(world, { kind: "late_money", reference: "tx-1", amountMinor: 1000 });
    const paid = await world.pay({ reference: "order", amountMinor: 1000 });
    const other = await world.pay({ reference: "other", amountMinor: 1000 });
    await world.database`
      update issues i set status = 'attributed', resolved_at = now(), resolved_by = 7, reason = 'Seen.',
        transaction_id = t.transaction_id, order_id = t.order_id
      from transactions t where 'transaction:' || t.transaction_id = ${paid} and i.issue_id = ${issueId}`;
    await world.importLines(world.qrAccountId, [lineOf("tx-1", 600), { name: "rest", amountMinor: 400 }]);
    await world.run(world.qrAccountId);
    const ids = await lineIds(world, world.qrAccountId);
    const confirm = (...paymentKeys: string[]) =>
      confirmMatch(world, { caller: operator(world), lineIds: ids, paymentKeys, reason: REASON });

    expect(await refusalOf(confirm(other))).toBe("line_attributed");
    await confirm(paid);

    expect((await world.run(world.qrAccountId)).lines).toEqual({ "tx-1": "matched", rest: "matched" });
  });

  test("a payout: confirmed by the net amount that has arrived", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    await world.importLines(world.terminalAccountId, [lineOf("paid out", -980, { kind: "payout" })]);
    const credit = lineOf("credit", 1000, { kind: "bank_credit", feeMinor: -20, netMinor: 980 });
    await world.importLines(bank, [credit]);
    expect((await world.run(bank)).lines).toEqual({ credit: "reference_mismatch" });
    const [id = 0] = await lineIds(world, bank);
    const { lines } = await listCandidates(world, { caller: operator(world), lineId: id, sinceId: 0, limit: 1 });
    const paymentKeys = lines[0]?.candidates.map(({ payment }) => payment.paymentKey) ?? [];

    await confirmMatch(world, { caller: operator(world), lineIds: [id], paymentKeys, reason: REASON });

    expect((await world.run(bank)).lines).toEqual({ credit: "matched" });
  });

  test("a rejected match: not found again, and its payment is free for another line", async () => {
    const world = await running.openWorld();
    const payment = await world.pay({ reference: "a", amountMinor: 1000 });
    await world.importLines(world.qrAccountId, [lineOf("a", 1000), lineOf("b", 1000, { providerReference: "" })]);
    await world.run(world.qrAccountId);
    const rows = await world.database<{ line_id: number }[]>`
      select line_id from statement_lines where account_id = ${world.qrAccountId} order by provider_reference desc`;
    const [a, b] = rows.map(({ line_id: lineId }) => lineId);
    const caller = operator(world);
    const confirm = () => confirmMatch(world, { caller, lineIds: [b ?? 0], paymentKeys: [payment], reason: REASON });
    expect(await refusalOf(confirm())).toBe("payment_matched");

    await rejectMatch(world, { caller, lineId: a ?? 0, paymentKey: payment, reason: REASON });
    await confirm();

    expect((await world.run(world.qrAccountId)).lines).toEqual({ a: "unmatched_money", b: "matched" });
  });

  test("a rejection of a payment that is neither a candidate nor a match of the line: not found", async () => {
    const world = await running.openWorld();
    const payment = await world.pay({ reference: "a", amountMinor: 1000 });
    await world.importLines(world.qrAccountId, [lineOf("b", 700)]);
    await world.run(world.qrAccountId);
    const [lineId = 0] = await lineIds(world, world.qrAccountId);
    const request = { caller: operator(world), lineId, paymentKey: payment, reason: REASON };
    expect(await refusalOf(rejectMatch(world, request))).toBe("not_found");
    const stranger = operator(await running.openWorld());
    expect(await refusalOf(rejectMatch(world, { ...request, caller: stranger }))).toBe("not_found");
  });

  test("a report after the end of its collection: a confirmation is refused, and a rejection is possible", async () => {
    const world = await running.openWorld();
    await world.reportLate("late-77");
    await world.importLines(world.terminalAccountId, [lineOf("unknown-1", 1000)]);
    expect((await world.run(world.terminalAccountId)).kinds).toEqual(["reference_mismatch"]);
    const caller = operator(world);
    const { lines } = await listCandidates(world, {
      caller,
      accountId: world.terminalAccountId,
      sinceId: 0,
      limit: 10,
    });
    const { lineId = 0 } = lines[0]?.line ?? {};
    const paymentKey = lines[0]?.candidates[0]?.payment.paymentKey ?? "";
    const confirm = confirmMatch(world, { caller, lineIds: [lineId], paymentKeys: [paymentKey], reason: REASON });
    expect(await refusalOf(confirm)).toBe("nothing_settled");

    await rejectMatch(world, { caller, lineId, paymentKey, reason: REASON });
    expect((await world.run(world.terminalAccountId)).kinds).toEqual(["unmatched_money"]);
  });

  test("two people who confirm one payment for two lines at once: one is refused", async () => {
    const world = await running.openWorld();
    const payment = await world.pay({ reference: "a", amountMinor: 1000 });
    await world.importLines(world.qrAccountId, [lineOf("x", 1000), lineOf("y", 1000)]);
    await world.run(world.qrAccountId);
    const ids = await lineIds(world, world.qrAccountId);
    const outcomes = await Promise.allSettled(
      ids.map((lineId, index) =>
        confirmMatch(world, {
          caller: operator(world, 7 + index),
          lineIds: [lineId],
          paymentKeys: [payment],
          reason: REASON,
        }),
      ),
    );
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    const { lines } = await world.run(world.qrAccountId);
    expect(Object.values(lines).filter((word) => word === "matched")).toHaveLength(1);
  });
});

describe("runs that start automatically", () => {
  test("an import requests a run of its account, and of the bank where its payouts arrive", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    await world.importLines(bank, [
      { name: "credit", kind: "bank_credit", amountMinor: 5000, text: "ACQUIRER PO-12345678", day: "2026-03-12" },
    ]);
    expect(await runWanted(world)).toBe(1);
    const outcomeOf = async () =>
      (
        await world.database`
          select o.reason from statement_lines l left join line_outcomes o using (line_id) where l.account_id = ${bank}`
      ).map((row) => row["reason"]);
    expect(await outcomeOf()).toEqual(["unmatched_money"]);

    await world.importLines(world.qrAccountId, [
      { name: "payout", kind: "payout", amountMinor: -5000, providerReference: "PO-12345678" },
    ]);

    expect(await runWanted(world)).toBe(2);
    expect(await outcomeOf()).toEqual([null]);
    const runs = await world.database`
      select started_by, from_date::text as from_date, to_date::text as to_date from reconciliation_runs
      where account_id = ${bank} order by run_id limit 1`;
    expect(runs.map((row) => ({ ...row }))).toEqual([
      { started_by: null, from_date: "2026-03-01", to_date: "2026-03-31" },
    ]);
  });

  test("many imports of an account at once request one run", async () => {
    const world = await running.openWorld();
    await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        world.importLines(world.qrAccountId, [lineOf(`l-${index}`, 100 + index)]),
      ),
    );
    expect(await runWanted(world)).toBe(1);
    expect(await runWanted(world)).toBe(0);
  });

  test("imports of accounts that affect one another end at the same time: no deadlock", async () => {
    const world = await running.openWorld();
    const accounts = [world.terminalAccountId, await world.addAccount("second"), await world.addAccount("third")];
    for (const account of accounts) await world.importLines(account, [lineOf("first", 100)]);
    await Promise.all(
      Array.from({ length: 24 }, (_, index) =>
        world.importLines(accounts[index % accounts.length] ?? 0, [lineOf(`l-${index}`, 100 + index)]),
      ),
    );
    expect(await runWanted(world)).toBe(accounts.length);
  });

  test("a busy account delays no other account, and its run starts when it is free", async () => {
    const world = await running.openWorld();
    const second = await world.addAccount("second");
    await world.importLines(world.terminalAccountId, [lineOf("first", 100)]);
    await world.importLines(second, [lineOf("other", 100)]);
    const before = await world.database`select from wanted_runs`;
    await world.database.begin(async (tx) => {
      const key = `reconciliation account ${world.terminalAccountId}`;
      await tx`select pg_advisory_xact_lock(hashtextextended(${key}, 0))`;
      expect(await runWanted(world)).toBe(before.count - 1);
    });
    expect(await runWanted(world)).toBe(1);
  });

  test("a run that a person starts ends the request over its days, but neither over other days nor a later one", async () => {
    const world = await running.openWorld();
    const { database, qrAccountId: accountId, organizationId } = world;
    await world.importLines(accountId, [lineOf("first", 100)]);
    await database`update wanted_runs set attempts = ${RUN_LIMITS.attempts}`;
    const requests = async () => (await database`select from wanted_runs where account_id = ${accountId}`).count;
    await world.run(accountId, { to: "2026-03-15" });
    expect(await requests()).toBe(1);
    const key = `reconciliation of ${organizationId}`;
    const run = await database.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(hashtextextended(${key}, 0))`;
      const begun = world.run(accountId);
      await vi.waitFor(async () => {
        const rows = await database`
          select from reconciliation_runs where account_id = ${accountId} and status = 'running'`;
        expect(rows.count).toBe(1);
      }, HANGS);
      await world.importLines(accountId, [lineOf("second", 200)]);
      return { begun };
    });
    await run.begun;
    expect(await requests()).toBe(1);
    await world.run(accountId);
    expect(await requests()).toBe(0);
  });

  test("a disk with little space: no run begins, and a run that found the disk full is tried again", async () => {
    const world = await running.openWorld();
    await world.importLines(world.qrAccountId, [lineOf("first", 100)]);
    expect(await runWanted(world, true)).toBe(0);
    await world.database.unsafe(`
      create function no_space() returns trigger language plpgsql as $$
        begin raise exception 'could not extend file' using errcode = '53100'; end $$;
      create trigger no_space before insert on line_outcomes for each row execute function no_space()`);
    const retry = () => world.database`update wanted_runs set last_wanted_at = now() - interval '1 hour'`;
    try {
      for (let attempt = 0; attempt <= RUN_LIMITS.attempts; attempt += 1) {
        expect(await runWanted(world)).toBe(1);
        await retry();
      }
    } finally {
      await world.database`drop function no_space cascade`;
    }
    expect(await runWanted(world)).toBe(1);
    expect(await runWanted(world)).toBe(0);
  });

  test("a run whose process has ended: failed, and the account can run again", async () => {
    const world = await running.openWorld();
    await world.database`
      insert into reconciliation_runs (organization_id, account_id, from_date, to_date)
      values (${world.organizationId}, ${world.qrAccountId}, '2026-03-01', '2026-03-31')`;
    const { runId } = await world.run(world.qrAccountId);
    const rows = await world.database<{ status: string }[]>`
      select status from reconciliation_runs where account_id = ${world.qrAccountId} and run_id <> ${runId}`;
    expect(rows.map(({ status }) => status)).toEqual(["failed"]);
  });
});
