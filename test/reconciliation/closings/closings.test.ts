/** Closing a period: what it requires, who closes it, what stays unchanged, and what happens to later lines. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { addEvidence } from "../../../services/providers/issue-recording.ts";
import { closePeriod, getClosing, listClosingKeys, listClosings } from "../../../services/reconciliation/closings.ts";
import { withdrawImport } from "../../../services/reconciliation/import-decisions.ts";
import { lockForClose } from "../../../services/reconciliation/sql/closings.ts";
import { closedPeriodOf } from "../../../services/reconciliation/sql/periods.ts";
import { QUIET } from "../../support/quiet-log.ts";
import {
  DAY,
  type Line,
  type RunDatabase,
  type RunWorld,
  raiseOfCallback,
  startRunDatabase,
} from "../matching/run-world.ts";
import { close, depsOf, newKey, operator, REASON, refusalOf, stateOf } from "./closing-world.ts";

let databases: RunDatabase;
let world: RunWorld;
beforeAll(async () => {
  databases = await startRunDatabase();
});
afterAll(() => databases.stop());
beforeEach(async () => {
  world = await databases.openWorld();
});

const unique = (): string => randomUUID();

/** A settled payment and its line, which match. */
async function matching(day = DAY): Promise<Line> {
  const reference = unique();
  await world.pay({ route: "attested_terminal", reference, day });
  return { name: unique(), providerReference: reference, day };
}
const stray = (day = DAY): Line => ({ name: unique(), providerReference: unique(), day });

/** A day with one matched line; nothing is missing. */
/** An intent without a transaction. */
const PENDING = 4_711_000;

async function readyDay(): Promise<{ readonly accountId: number; readonly importId: number }> {
  const accountId = world.terminalAccountId;
  const importId = await world.importLines(accountId, [await matching()]);
  await run(accountId);
  return { accountId, importId };
}

/** Runs the account as the service does after an import, and leaves no requested run. */
async function run(accountId: number): Promise<void> {
  await world.run(accountId);
  await world.database`delete from wanted_runs where organization_id = ${world.organizationId}`;
}

async function afterClosing(accountId: number) {
  const rows = await world.database<{ subject_key: string; status: string; amount_minor: number }[]>`
    select subject_key, status, amount_minor from issues where statement_account_id = ${accountId} and kind = 'after_closing'
    order by issue_id`;
  return rows.map((row) => ({ ...row }));
}

async function decideAll(accountId: number): Promise<void> {
  await world.database`
    update issues set status = 'closed', resolved_at = now(), resolved_by = 7, reason = 'Dealt with.', assignee_id = null
    where statement_account_id = ${accountId} and status in ('open', 'assigned')`;
}

describe("an open period", () => {
  test("a period that no statement covers: it stays open", async () => {
    expect(await stateOf(world, world.terminalAccountId)).toEqual(["open", "statement_missing"]);
  });

  test("a period whose lines no run has compared: it stays open", async () => {
    await world.importLines(world.terminalAccountId, [stray()]);
    expect(await stateOf(world, world.terminalAccountId)).toEqual(["open", "run_missing", "run_pending"]);
  });

  test("a period to which a requested run over later days reaches back: it stays open", async () => {
    const { accountId } = await readyDay();
    await world.importLines(accountId, [stray("2026-04-02")], { from: "2026-04-01", to: "2026-04-30" });
    expect(await stateOf(world, accountId)).toEqual(["open", "run_pending"]);
  });

  test("a period with an issue without a decision: it stays open", async () => {
    await world.importLines(world.terminalAccountId, [stray()]);
    await run(world.terminalAccountId);
    expect(await stateOf(world, world.terminalAccountId)).toEqual(["open", "issues_undecided"]);
    expect(await stateOf(world, world.terminalAccountId, { fromDate: "2026-03-11" })).toEqual(["ready"]);
    await decideAll(world.terminalAccountId);
    expect(await stateOf(world, world.terminalAccountId)).toEqual(["ready"]);
  });

  test("a row that could not be read: each day of its file stays open until its issue is decided, and their closings have it", async () => {
    const { accountId, importId } = await readyDay();
    await world.database`
      insert into statement_malformed (import_id, position, column_name, reason, raw)
      values (${importId}, 2, 'Amount', 'It is no amount.', 'x')`;
    await run(accountId);
    const states = () =>
      Promise.all(["2026-03-01", "2026-03-20"].map((fromDate) => stateOf(world, accountId, { fromDate })));
    expect(await states()).toEqual([
      ["open", "issues_undecided"],
      ["open", "issues_undecided"],
    ]);
    await decideAll(accountId);
    expect(await states()).toEqual([["ready"], ["ready"]]);
    expect(await close(world, accountId, { fromDate: "2026-03-20" })).toMatchObject({ issues: 1 });
  });

  const APRIL = { from: "2026-04-01", to: "2026-04-30" };
  /** A file of March and one of April, which end with the same text. */
  async function importFooters(): Promise<number> {
    const { accountId, importId } = await readyDay();
    const later = await world.importLines(accountId, [await matching("2026-04-10")], APRIL);
    await world.database`
      insert into statement_malformed (import_id, position, column_name, reason, raw)
      select id, 2, 'Amount', 'It is no amount.', 'No warranty' from unnest(${[importId, later]}::bigint[]) id`;
    return accountId;
  }
  const runApril = async (accountId: number) => {
    const outcome = await world.run(accountId, APRIL);
    await world.database`delete from wanted_runs where organization_id = ${world.organizationId}`;
    return outcome;
  };

  test("a row that two files of different months have: the days of both stay open, after runs over each of them", async () => {
    const accountId = await importFooters();
    await run(accountId);
    for (const runAgain of [runApril, run]) {
      await runAgain(accountId);
      for (const fromDate of ["2026-03-20", "2026-04-20"])
        expect(await stateOf(world, accountId, { fromDate })).toEqual(["open", "issues_undecided"]);
    }
  });

  test("a row that two files of different months have, closed with the first one: no alarm after the closings of both", async () => {
    const accountId = await importFooters();
    await run(accountId);
    await decideAll(accountId);
    await close(world, accountId, { fromDate: "2026-03-20" });
    await runApril(accountId);
    await close(world, accountId, { fromDate: "2026-04-20" });

    await run(accountId);
    expect((await runApril(accountId)).kinds).toEqual(["malformed_line"]);
  });

  test.each([
    ["held", "import_held"],
    ["needs_format", "import_unfinished"],
    ["importing", "import_unfinished"],
  ])("a period with a file that is %s: it stays open", async (status, code) => {
    const { accountId } = await readyDay();
    const importId = await world.importLines(accountId, []);
    await world.database`
      update statement_imports set status = ${status}, status_code = 'x', from_date = null, to_date = null where import_id = ${importId}`;
    await world.database`delete from wanted_runs where organization_id = ${world.organizationId}`;
    expect(await stateOf(world, accountId)).toEqual(["open", code]);
  });

  test("a period with a line of a file that names other days and is being withdrawn: it stays open", async () => {
    const { accountId, importId } = await readyDay();
    await world.importLines(accountId, []);
    await world.database`
      update statement_imports set status = 'withdrawing', withdrawn_by = 7, withdrawn_at = now(), withdrawal_reason = 'Wrong.',
        from_date = '2026-04-01', to_date = '2026-04-30' where import_id = ${importId}`;
    await world.database`delete from wanted_runs where account_id = ${accountId}`;
    expect(await stateOf(world, accountId)).toEqual(["open", "import_unfinished"]);
    expect(await refusalOf(close(world, accountId))).toBe("period_not_ready");
    expect(await stateOf(world, accountId, { fromDate: "2026-03-11" })).toEqual(["ready"]);
  });

  test("a period in which the provider may still book payments: it stays open", async () => {
    const { accountId } = await readyDay();
    const today = new Date().toISOString().slice(0, 10);
    await world.importLines(accountId, [], { from: today, to: today });
    await world.database`delete from wanted_runs where organization_id = ${world.organizationId}`;
    expect(await stateOf(world, accountId, { fromDate: today })).toEqual(["open", "settlement_delay"]);
  });

  test("a period whose payment a later statement may show: it stays open, and later the payment is missing", async () => {
    const accountId = world.terminalAccountId;
    await world.importLines(accountId, [await matching()]);
    await world.pay({ route: "smart_pos", reference: unique(), day: "2026-03-31" });
    await run(accountId);
    const last = { fromDate: "2026-03-31" };
    expect(await stateOf(world, accountId, last)).toEqual(["open", "payments_expected"]);
    await world.importLines(accountId, [], { from: "2026-04-01", to: "2026-04-20" });
    await world.run(accountId, { to: "2026-04-20" });
    await world.database`delete from wanted_runs where organization_id = ${world.organizationId}`;
    expect(await stateOf(world, accountId, last)).toEqual(["open", "issues_undecided"]);
  });

  test.each([
    ["a credit that names two payouts and has another sum", ["PO-12345678", "PO-87654321"], [7090]],
    ["credits that name one payout and add up to less", ["PO-12345678"], [1500, 1000]],
  ])("%s: the period is ready when the difference is decided", async (_, payouts, credits) => {
    const bank = await world.addAccount("bank");
    const lines = payouts.map(
      (reference): Line => ({
        ...stray(),
        kind: "payout",
        amountMinor: -3500,
        providerReference: reference,
        // Its key has a space.
        payoutReference: `Batch ${reference}`,
      }),
    );
    await world.importLines(world.terminalAccountId, lines);
    const text = `ACQUIRER ${payouts.join(" ")}`;
    await world.importLines(
      bank,
      credits.map((amountMinor): Line => ({ ...stray(), kind: "bank_credit", amountMinor, text })),
    );
    await run(bank);
    expect(await stateOf(world, bank)).toEqual(["open", "issues_undecided"]);
    await decideAll(bank);
    expect(await stateOf(world, bank)).toEqual(["ready"]);
  });

  test("a line with the reference of two payments, closed without a choice: both payments are missing then", async () => {
    const accountId = world.terminalAccountId;
    const reference = unique();
    for (const _ of [1, 2]) await world.pay({ route: "attested_terminal", reference });
    await world.importLines(accountId, [{ ...stray(), providerReference: reference }]);
    await run(accountId);
    expect(await stateOf(world, accountId)).toContain("issues_undecided");
    await decideAll(accountId);
    const { kinds } = await world.run(accountId);
    expect(kinds).toEqual(["ambiguous_match", "missing_in_statement", "missing_in_statement"]);
    await decideAll(accountId);
    await run(accountId);
    expect(await stateOf(world, accountId)).toEqual(["ready"]);
  });

  test("a period with a settlement without an outcome: it stays open", async () => {
    const { accountId } = await readyDay();
    const [paid] = await world.database<{ intent_id: number }[]>`select max(intent_id) as intent_id from transactions`;
    const event = (ordinal: number, type: string, intentId = PENDING) => world.database`
      insert into station_events (station_id, version, ordinal, organization_id, intent_id, at, type, actor_kind, actor_id, actor_name, data,
        machine_version, stream_sequence)
      values (${world.stationId}, 1, ${ordinal}, ${world.organizationId}, ${intentId}, ${`${DAY}T12:00:00Z`}, ${type}, 'cashier', 7, 'Ann', '{}', 1, 1)`;
    // The copy lacks the end of a settlement whose commit the log has lost. Its transaction is the outcome.
    await event(0, "settlement_started", paid?.intent_id);
    expect(await stateOf(world, accountId)).toEqual(["ready"]);
    await event(1, "settlement_started");
    expect(await stateOf(world, accountId)).toEqual(["open", "settlement_pending"]);
    await event(2, "intent_succeeded");
    expect(await stateOf(world, accountId)).toEqual(["ready"]);
  });
});

describe("a close", () => {
  test("a period that is not ready: refused, with the missing parts", async () => {
    const closing = close(world, world.terminalAccountId);
    await expect(closing).rejects.toThrow(/days that no statement covers: 1/);
    expect(await refusalOf(close(world, world.terminalAccountId))).toBe("period_not_ready");
  });

  test("signs counts, sums, files and hashes, and names its key", async () => {
    const { accountId, importId } = await readyDay();
    const closing = await close(world, accountId);
    expect(JSON.parse(closing.statement)).toMatchObject({
      format: "device-payments/closing",
      version: 1,
      account: { account_id: accountId, provider: "terminal", reference: "M-1", mode: "live" },
      period: { kind: "day", from_date: DAY, to_date: DAY },
      closed_by: { user_id: 7, name: "Operator 7" },
      reason: REASON,
      key_id: closing.signature.keyId,
      lines: { count: 1 },
      issues: { count: 0 },
      totals: [{ currency: "EUR", kind: "payment", lines: 1, amount_minor: "1250", fee_minor: "0", tip_minor: "0" }],
      outcomes: [{ currency: "EUR", outcome: "matched", lines: 1, amount_minor: "1250" }],
      imports: [{ import_id: importId }],
      previous_closing: null,
    });
    const { keys } = await listClosingKeys(depsOf(world), { caller: operator(world) });
    expect(keys).toContainEqual(
      expect.objectContaining({ keyId: closing.signature.keyId, publicKey: closing.signature.publicKey }),
    );
    expect(await stateOf(world, accountId)).toEqual(["closed"]);
  });

  test("a repeated close: the same closing for the same person, refused for another person", async () => {
    const { accountId } = await readyDay();
    const closing = await close(world, accountId);
    expect(await close(world, accountId)).toEqual(closing);
    expect(await refusalOf(close(world, accountId, { userId: 8 }))).toBe("period_closed");
    expect(await refusalOf(close(world, accountId, { reason: "Other." }))).toBe("period_closed");
  });

  test("two people at once: one closing", async () => {
    const { accountId } = await readyDay();
    const results = await Promise.all([7, 8].map((userId) => refusalOf(close(world, accountId, { userId }))));
    expect(results.filter((result) => result === "none")).toHaveLength(1);
    expect(["period_closed", "busy"]).toContain(results.find((result) => result !== "none"));
    const { closings } = await listClosings(depsOf(world), { caller: operator(world), accountId, limit: 10 });
    expect(closings).toHaveLength(1);
  });

  test("a month: closes its days, and follows the closing before it", async () => {
    const { accountId } = await readyDay();
    await world.importLines(accountId, [], { from: "2026-04-01", to: "2026-04-10" });
    await run(accountId);
    const day = await close(world, accountId);
    const month = await close(world, accountId, { kind: "month", fromDate: "2026-03-01" });
    const { previous_closing: previous } = JSON.parse(month.statement) as { previous_closing: string };
    const [row] = await world.database<{ hash: string }[]>`
      select encode(statement_hash, 'hex') as hash from period_closings where closing_id = ${day.closingId}`;
    expect(previous).toBe(row?.hash);
    expect(await refusalOf(close(world, accountId, { fromDate: "2026-03-12" }))).toBe("period_closed");
    expect(await stateOf(world, accountId, { fromDate: "2026-03-12" })).toEqual(["closed"]);
  });

  test("no signing key, a month that begins on its second day, or another organization: refused", async () => {
    const { accountId } = await readyDay();
    const request = { caller: operator(world), accountId, kind: "day" as const, fromDate: DAY, reason: REASON };
    const keyless = { ...depsOf(world), closingKey: undefined };
    expect(await refusalOf(closePeriod(keyless, request))).toBe("no_signing_key");
    expect(await refusalOf(close(world, accountId, { kind: "month", fromDate: "2026-03-02" }))).toBe("invalid_request");
    const other = await databases.openWorld();
    expect(await refusalOf(close(other, accountId))).toBe("not_found");
  });

  test("a new signing key: the key of the earlier closing stays in the list", async () => {
    const { accountId } = await readyDay();
    const first = await close(world, accountId);
    const request = {
      caller: operator(world),
      accountId,
      kind: "day" as const,
      fromDate: "2026-03-11",
      reason: REASON,
    };
    const { closing: second } = await closePeriod(depsOf(world, newKey()), request);
    const { keys } = await listClosingKeys(depsOf(world), { caller: operator(world) });
    const known = keys.map(({ keyId }) => keyId);
    expect(known).toContain(first.signature.keyId);
    expect(known).toContain(second.signature.keyId);
  });

  test("an account in which an import stores lines, or a run works: busy at once", async () => {
    const { accountId } = await readyDay();
    const lockers = [
      "select from statement_accounts where account_id = $1 for update",
      "select pg_advisory_xact_lock(hashtextextended('reconciliation account ' || $1::bigint, 0))",
    ];
    for (const locker of lockers) {
      await world.database.begin(async (tx) => {
        await tx.unsafe(locker, [accountId]);
        expect(await refusalOf(close(world, accountId))).toBe("busy");
      });
    }
    expect(await refusalOf(close(world, accountId))).toBe("none");
  });
});

describe("a closed period", () => {
  const CHANGES = [
    "update period_closings set reason = 'other'",
    "delete from period_closings",
    "truncate period_closings cascade",
    "delete from closing_imports",
    "update closing_issues set item = ''",
    "delete from closing_keys",
    "update statement_lines set amount_minor = 1",
    "delete from statement_lines",
  ];

  test(`never changes: ${CHANGES.join("; ")}`, async () => {
    const { accountId } = await readyDay();
    await world.importLines(accountId, [stray("2026-03-11")]);
    await run(accountId);
    await decideAll(accountId);
    await close(world, accountId, { fromDate: "2026-03-11" });
    for (const change of CHANGES) {
      const foreign = change.startsWith("delete from statement_lines");
      await expect(
        world.database.unsafe(foreign ? `${change} where account_id = ${accountId}` : change),
        change,
      ).rejects.toThrow(/never change|belongs to a closed period/);
    }
  });

  test("a withdrawal of one of its files: refused; of another file: carried out", async () => {
    const { accountId, importId } = await readyDay();
    const later = await world.importLines(accountId, [stray("2026-04-05")], { from: "2026-04-05", to: "2026-04-06" });
    await run(accountId);
    await close(world, accountId);
    expect(await closedPeriodOf(world.database, importId)).toMatchObject({ kind: "day", fromDate: DAY });
    const deps = { ...depsOf(world), log: QUIET, underWay: new Set<Promise<void>>() };
    const withdraw = (id: number) =>
      refusalOf(withdrawImport(deps, { caller: operator(world), importId: id, reason: "Wrong." }));
    expect(await withdraw(importId)).toBe("period_closed");
    expect(await withdraw(later)).toBe("none");
  });
});

describe("lines after a closing", () => {
  test("a line that comes later is an issue, and the closing does not change", async () => {
    const { accountId } = await readyDay();
    const closing = await close(world, accountId);
    const late = await world.importLines(accountId, [stray()]);
    await run(accountId);
    expect(await afterClosing(accountId)).toMatchObject([{ status: "open", amount_minor: 1250 }]);
    const { closing: same } = await getClosing(depsOf(world), {
      caller: operator(world),
      closingId: closing.closingId,
    });
    expect(same).toEqual({ ...closing, afterClosing: 1 });
    await run(accountId);
    expect(await afterClosing(accountId)).toHaveLength(1);
    await world.database`delete from statement_line_sources where import_id = ${late}`;
    await world.database`
      delete from statement_lines l where account_id = ${accountId} and not exists (
        select from statement_line_sources s where s.line_id = l.line_id)`;
    await run(accountId);
    expect(await afterClosing(accountId)).toMatchObject([{ status: "ended" }]);
  });

  test("a line that matches its payment is an issue too, and a closed issue stays closed", async () => {
    const { accountId } = await readyDay();
    await close(world, accountId);
    await world.importLines(accountId, [await matching()]);
    await run(accountId);
    expect(await afterClosing(accountId)).toHaveLength(1);
    await decideAll(accountId);
    await run(accountId);
    expect(await afterClosing(accountId)).toMatchObject([{ status: "closed" }]);
  });

  test("a new issue of a closed day raises `after_closing`", async () => {
    const accountId = world.terminalAccountId;
    await world.importLines(accountId, [stray()]);
    await run(accountId);
    await decideAll(accountId);
    await close(world, accountId);
    await run(accountId);
    expect(await afterClosing(accountId)).toEqual([]);
    // The row may be about any day of its file.
    const malformed = await world.importLines(accountId, [], { from: "2026-03-05", to: "2026-03-20" });
    await world.database`
      insert into statement_malformed (import_id, position, column_name, reason, raw)
      values (${malformed}, 1, 'Amount', 'It is no amount.', 'x')`;
    await run(accountId);
    expect(await afterClosing(accountId)).toMatchObject([{ status: "open" }]);
    expect((await afterClosing(accountId))[0]?.subject_key).toMatch(/^closed:malformed_line:row:/);
  });

  test("lines of open days do not raise `after_closing`", async () => {
    const { accountId } = await readyDay();
    await close(world, accountId);
    await world.importLines(accountId, [stray("2026-03-11")]);
    await run(accountId);
    expect(await afterClosing(accountId)).toEqual([]);
  });
});

describe("callbacks after a closing", () => {
  const REFERENCE = "tx-1";

  /** Raises a callback's issue with this status, and closes its day. */
  async function closeWithIssue(status: "closed" | "ended") {
    const { database, qrAccountId } = world;
    await world.importLines(qrAccountId, []);
    await run(qrAccountId);
    const raised = { kind: "unmatched_money", reference: REFERENCE, amountMinor: 1250 };
    const issueId = await raiseOfCallback(world, raised);
    await database`
      update issues set status = ${status}, resolved_at = now(), reason = 'Paid back.',
        resolved_by = ${status === "closed" ? 7 : null} where issue_id = ${issueId}`;
    return { issueId, closing: await close(world, qrAccountId) };
  }

  const assertAgain = (issueId: number, said: string, amountMinor: string) => {
    const { organizationId, configId, database } = world;
    const money = { providerReference: REFERENCE, reference: "r", account: "M-1", amountMinor, currency: "EUR", said };
    const source = { configId, organizationId, eventKey: said, learnedFrom: "payment.succeeded" };
    const issue = { issueId, kind: "unmatched_money" as const, intentId: null };
    return database.begin((tx) => addEvidence(tx, issue, { source, money, payment: undefined }));
  };

  test.each(["closed", "ended"] as const)("a new amount of a payment whose issue is %s: one issue", async (status) => {
    const { issueId, closing } = await closeWithIssue(status);
    const { events } = await assertAgain(issueId, "second", "1300");
    expect(events).toMatchObject([{ issueId }, { type: "issues_opened" }]);
    const named = [{ subject_key: `closed:unmatched_money:money:${REFERENCE}`, status: "open", amount_minor: 1300 }];
    expect(await afterClosing(world.qrAccountId)).toEqual(named);
    const request = { caller: operator(world), closingId: closing.closingId };
    expect((await getClosing(depsOf(world), request)).closing).toEqual({ ...closing, afterClosing: 1 });
    await assertAgain(issueId, "second", "1300");
    await run(world.qrAccountId);
    expect(await afterClosing(world.qrAccountId)).toEqual(named);
    const [, changed] = (await assertAgain(issueId, "third", "1400")).events;
    expect(changed?.type).toBe("issues_changed");
    expect(await afterClosing(world.qrAccountId)).toMatchObject([{ amount_minor: 1400 }]);
  });

  test("another amount of a payment of an open day: no `after_closing` issue", async () => {
    const { issueId } = await closeWithIssue("closed");
    await world.database`update issues set opened_at = '2026-03-11T12:00:00Z' where issue_id = ${issueId}`;
    await assertAgain(issueId, "second", "1300");
    expect(await afterClosing(world.qrAccountId)).toEqual([]);
  });

  test("an issue that has ended: a close under way locks it until its commit", async () => {
    const { issueId } = await closeWithIssue("ended");
    const accountId = world.qrAccountId;
    await world.database.begin(async (tx) => {
      expect(await lockForClose(tx, { kind: "day", fromDate: DAY, toDate: DAY, accountId, waitMs: 1_000 })).toBe(true);
      const reopen = world.database.begin(async (other) => {
        await other`set local lock_timeout = '50ms'`;
        await other`update issues set last_seen_at = now() where issue_id = ${issueId}`;
      });
      await expect(reopen).rejects.toThrow("lock timeout");
    });
  });
});
