/** Several runs over the same days: what people have decided stays, and the order of imports does not matter. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunUnderWayError, runReconciliation } from "../../../services/reconciliation/matching.ts";
import { countChanges } from "../../../services/reconciliation/sql/runs.ts";
import {
  FIRST_DAY,
  LAST_DAY,
  type Line,
  lineOf,
  ourReference,
  type RunDatabase,
  type RunWorld,
  startRunDatabase,
} from "./run-world.ts";

let running: RunDatabase;
beforeAll(async () => {
  running = await startRunDatabase();
});
afterAll(() => running.stop());

async function closeAll(world: RunWorld): Promise<void> {
  await world.database`
    update issues set status = 'closed', resolved_at = now(), resolved_by = 7, reason = 'Dealt with.'
    where organization_id = ${world.organizationId} and status = 'open'`;
}

const issuesOf = async (world: RunWorld) =>
  (
    await world.database<{ kind: string; status: string; generation: number }[]>`
      select kind, status, generation from issues where organization_id = ${world.organizationId} order by issue_id`
  ).map((row) => ({ ...row }));

describe("several runs over the same days", () => {
  test("a closed difference stays closed on the next run, and returns as a new issue when its evidence changes", async () => {
    const world = await running.openWorld();
    await world.pay({ reference: "a", amountMinor: 1000 });
    await world.importLines(world.qrAccountId, [lineOf("a", 1010), lineOf("stray", 500)]);
    const first = await world.run(world.qrAccountId);
    expect(first.kinds).toEqual(["amount_over", "unmatched_money"]);
    await closeAll(world);

    const second = await world.run(world.qrAccountId);
    expect(second).toMatchObject({ kinds: first.kinds, resultHash: first.resultHash });
    expect((await issuesOf(world)).map(({ status }) => status)).toEqual(["closed", "closed"]);
    expect(await countChanges(world.database, { runId: second.runId, previousRunId: first.runId })).toEqual({
      new: 0,
      gone: 0,
      changed: 0,
      unchanged: 2,
    });

    await world.database`update statement_lines set amount_minor = 1020 where amount_minor = 1010`;
    const third = await world.run(world.qrAccountId);
    expect(await countChanges(world.database, { runId: third.runId, previousRunId: second.runId })).toMatchObject({
      changed: 1,
      unchanged: 1,
    });
    expect(await issuesOf(world)).toContainEqual({ kind: "amount_over", status: "open", generation: 2 });
  });

  test("a difference that a later import explains ends, and its payment is matched", async () => {
    const world = await running.openWorld();
    await world.pay({ reference: "a", amountMinor: 1000 });
    await world.importLines(world.qrAccountId, [lineOf("b", 700)]);
    const first = await world.run(world.qrAccountId);
    expect(first.kinds).toEqual(["missing_in_statement", "unmatched_money"]);
    await world.importLines(world.qrAccountId, [lineOf("a", 1000)]);

    const second = await world.run(world.qrAccountId);

    expect(second.kinds).toEqual(["unmatched_money"]);
    expect(second.lines).toMatchObject({ a: "matched" });
    expect(await issuesOf(world)).toContainEqual({ kind: "missing_in_statement", status: "ended", generation: 1 });
    const changes = await countChanges(world.database, { runId: second.runId, previousRunId: first.runId });
    expect(changes).toEqual({ new: 0, gone: 1, changed: 0, unchanged: 1 });
  });

  test("a match keeps its id on the next run, and ends with the line of a withdrawn file", async () => {
    const world = await running.openWorld();
    await world.pay({ reference: "a", amountMinor: 1000 });
    await world.importLines(world.qrAccountId, [lineOf("a", 1000)]);
    await world.run(world.qrAccountId);
    const matches = () =>
      world.database`select match_id from statement_matches where account_id = ${world.qrAccountId}`;
    const before = await matches();
    await world.run(world.qrAccountId);
    expect(await matches()).toEqual(before);

    await world.withdraw(world.qrAccountId);
    const after = await world.run(world.qrAccountId);

    expect(after).toMatchObject({ kinds: [], lines: {} });
    expect(await matches()).toHaveLength(0);
  });

  test("the order in which lines were imported does not change the result", async () => {
    const lines: Line[] = [
      lineOf("a", 1000),
      lineOf("b", 1111, { merchantReference: "shared" }),
      lineOf("b2", 1111, { providerReference: "b" }),
      lineOf("c", 1200, { providerReference: "" }),
      lineOf("c2", 1200, { providerReference: "" }),
      lineOf("d", 905, { day: "2026-03-12" }),
      { name: "payout", kind: "payout", amountMinor: -500, payoutReference: "P" },
      { name: "fee", kind: "fee", amountMinor: -5, payoutReference: "P" },
    ];
    const results = [];
    for (const ordered of [
      lines,
      lines.toReversed(),
      lines.toSorted((x, y) => (x.amountMinor ?? 0) - (y.amountMinor ?? 0)),
    ]) {
      const world = await running.openWorld();
      for (const [reference, amountMinor] of [
        ["a", 1000],
        ["b", 1111],
        ["c", 1200],
        ["e", 905],
      ] as const) {
        await world.pay({ reference, amountMinor });
      }
      for (const line of ordered) await world.importLines(world.qrAccountId, [line]);
      const { lines: found, kinds } = await world.run(world.qrAccountId);
      results.push({ found, kinds });
    }
    expect(results[1]).toEqual(results[0]);
    expect(results[2]).toEqual(results[0]);
  });

  test("two runs of one account at once: one is refused", async () => {
    const world = await running.openWorld();
    await world.importLines(world.qrAccountId, [lineOf("a", 1000)]);
    const request = {
      organizationId: world.organizationId,
      accountId: world.qrAccountId,
      fromDate: FIRST_DAY,
      toDate: LAST_DAY,
      startedBy: 7,
    };
    const started = Promise.withResolvers<void>();
    const first = runReconciliation({ database: world.database, longDatabase: world.database }, request, () =>
      started.resolve(),
    );
    await started.promise;
    await expect(
      runReconciliation({ database: world.database, longDatabase: world.database }, request),
    ).rejects.toThrow(RunUnderWayError);
    await first;
  });

  test("two accounts of a filial never match the same terminal payment", async () => {
    const world = await running.openWorld();
    const second = await world.addAccount("another");
    for (let index = 0; index < 10; index += 1) {
      const reference = `terminal-${index}`;
      await world.pay({ route: "attested_terminal", reference, amountMinor: 1000 + index });
      const line = lineOf(reference, 1000 + index);
      await world.importLines(world.terminalAccountId, [line]);
      await world.importLines(second, [line]);
    }
    const [first, other] = await Promise.all([world.run(world.terminalAccountId), world.run(second)]);
    const matched = [...Object.values(first.lines), ...Object.values(other.lines)].filter((word) => word === "matched");
    expect(matched).toHaveLength(10);
  });
});

test("clocks go back to midnight: a payment between the two midnights is expected on the day that begins, and only on it", async () => {
  const world = await running.openWorld();
  const account = world.qrAccountId;
  await world.database`update statement_accounts set time_zone = 'Atlantic/Azores' where account_id = ${account}`;
  await world.pay({ reference: "night", at: "2026-10-25T00:30:00Z" });
  const expectedOn = (day: string) => world.database`select from expected_payments(${account}, ${day}, ${day})`;
  const days = ["2026-10-24", "2026-10-25", "2026-10-26"];
  expect((await Promise.all(days.map(expectedOn))).map(({ length }) => length)).toEqual([0, 1, 0]);
});

describe("groups and decisions", () => {
  test("several lines that add up to a payment match it, and one line matches several payments", async () => {
    const world = await running.openWorld();
    await world.pay({ reference: "split", amountMinor: 3000 });
    await world.pay({ route: "attested_terminal", reference: "SLIP-4711", amountMinor: 800 });
    await world.pay({ route: "attested_terminal", reference: "SLIP-4711", amountMinor: 700 });
    const merchantReference = ourReference(world.organizationId, "split");
    await world.importLines(world.qrAccountId, [
      lineOf("part-1", 1000, { merchantReference }),
      lineOf("part-2", 2000, { merchantReference }),
    ]);
    await world.importLines(world.terminalAccountId, [lineOf("slip-4711", 1500)]);
    expect(await world.run(world.qrAccountId)).toMatchObject({
      kinds: [],
      lines: { "part-1": "matched", "part-2": "matched" },
    });
    expect(await world.run(world.terminalAccountId)).toMatchObject({ kinds: [], lines: { "slip-4711": "matched" } });
  });

  test("a bank credit matches the payout that it names, and differs when that payout has another amount", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    await world.importLines(world.qrAccountId, [
      { name: "payout-1", kind: "payout", amountMinor: -5000, providerReference: "PO-12345678" },
      { name: "payout-2", kind: "payout", amountMinor: -6000, providerReference: "PO-87654321" },
    ]);
    await world.importLines(bank, [
      { name: "credit-1", kind: "bank_credit", amountMinor: 5000, text: "ACQUIRER PO-12345678 MARCH" },
      { name: "credit-2", kind: "bank_credit", amountMinor: 5990, text: "ACQUIRER PO-87654321 MARCH" },
    ]);
    const outcome = await world.run(bank);
    expect(outcome.lines).toEqual({ "credit-1": "matched", "credit-2": "amount_under" });
  });

  test("a rejected candidate is not proposed again, and a confirmed one matches", async () => {
    const world = await running.openWorld();
    const payment = await world.pay({ reference: "a", amountMinor: 1000 });
    await world.importLines(world.qrAccountId, [lineOf("typed-wrong", 1000)]);
    expect((await world.run(world.qrAccountId)).kinds).toEqual(["reference_mismatch"]);
    const decide = async (decision: string): Promise<void> => {
      await world.database`
        insert into match_decisions (account_id, fingerprint, payment_key, decision, decided_by, reason)
        select account_id, fingerprint, ${payment}, ${decision}, 7, 'Checked.' from statement_lines
        where account_id = ${world.qrAccountId}
        on conflict (account_id, fingerprint, payment_key) do update set decision = excluded.decision`;
    };
    await decide("rejected");
    expect((await world.run(world.qrAccountId)).kinds).toEqual(["missing_in_statement", "unmatched_money"]);
    await decide("confirmed");
    expect(await world.run(world.qrAccountId)).toMatchObject({ kinds: [], lines: { "typed-wrong": "matched" } });
  });

  test("a confirmed group is no match while its sums differ", async () => {
    const world = await running.openWorld();
    const payment = await world.pay({ reference: "a", amountMinor: 1000 });
    await world.importLines(world.qrAccountId, [lineOf("a", 990)]);
    await world.database`
      insert into match_decisions (account_id, fingerprint, payment_key, decision, decided_by, reason)
      select account_id, fingerprint, ${payment}, 'confirmed', 7, 'Checked.' from statement_lines
      where account_id = ${world.qrAccountId}`;
    expect((await world.run(world.qrAccountId)).kinds).toEqual(["amount_under"]);
  });

  test("a decided line without a payment stays decided when its candidates change, until its evidence changes", async () => {
    const world = await running.openWorld();
    await world.importLines(world.qrAccountId, [lineOf("stray", 500)]);
    expect((await world.run(world.qrAccountId)).kinds).toEqual(["unmatched_money"]);
    await closeAll(world);
    await world.pay({ reference: "a", amountMinor: 500, day: "2026-03-09" });

    const second = await world.run(world.qrAccountId);

    expect(second).toMatchObject({
      kinds: ["missing_in_statement", "unmatched_money"],
      lines: { stray: "unmatched_money" },
    });
    expect(await issuesOf(world)).toEqual([
      { kind: "unmatched_money", status: "closed", generation: 1 },
      { kind: "missing_in_statement", status: "open", generation: 1 },
    ]);

    await world.pay({ reference: "b", amountMinor: 510 });
    await world.database`update statement_lines set amount_minor = 510 where amount_minor = 500`;
    expect((await world.run(world.qrAccountId)).lines).toEqual({ stray: "reference_mismatch" });
  });

  test("a closed line whose candidate has changed before: keeps the payment that the person has seen", async () => {
    const world = await running.openWorld();
    await world.pay({ reference: "first", amountMinor: 500 });
    await world.importLines(world.qrAccountId, [lineOf("typed-wrong", 500)]);
    expect((await world.run(world.qrAccountId)).kinds).toEqual(["reference_mismatch"]);
    await world.pay({ reference: "second", amountMinor: 500 });
    await world.importLines(world.qrAccountId, [lineOf("first", 500)]);
    const before = await world.run(world.qrAccountId);
    expect(before.lines).toEqual({ first: "matched", "typed-wrong": "reference_mismatch" });
    await closeAll(world);

    const { kinds, resultHash } = await world.run(world.qrAccountId);

    expect({ kinds, resultHash }).toEqual({ kinds: ["reference_mismatch"], resultHash: before.resultHash });
  });

  test("a closed line whose payment another account shows since: stays closed", async () => {
    const world = await running.openWorld();
    const { database, qrAccountId, configId, terminalAccountId } = world;
    await database`update statement_accounts set config_id = null where account_id = ${qrAccountId}`;
    await world.pay({ reference: "a", amountMinor: 500 });
    await world.importLines(terminalAccountId, [lineOf("typed-wrong", 500)]);
    expect((await world.run(terminalAccountId)).kinds).toEqual(["reference_mismatch"]);
    await closeAll(world);
    await database`update statement_accounts set config_id = ${configId} where account_id = ${qrAccountId}`;

    expect((await world.run(terminalAccountId)).kinds).toEqual(["reference_mismatch"]);
    expect(await issuesOf(world)).toEqual([{ kind: "reference_mismatch", status: "closed", generation: 1 }]);
  });

  test("credits of a bank that numbers its entries again each day: one issue each, with one decision each", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    const credit = (name: string, day: string, amountMinor: number) =>
      lineOf(name, amountMinor, { kind: "bank_credit", providerReference: "1", day });
    const states = async () =>
      (
        await world.database`
          select amount_minor || ' ' || status as state from issues where account_key = ${`statement:${bank}`} order by issue_id`
      ).map((row) => String(row["state"]));
    await world.importLines(bank, [credit("first", "2026-03-10", 1000)]);
    await world.importLines(bank, [credit("second", "2026-03-11", 2000)]);
    await world.run(bank);
    expect((await states()).toSorted()).toEqual(["1000 open", "2000 open"]);
    const payment = await world.pay({ route: "attested_terminal", reference: "slip", amountMinor: 1000 });
    await world.database`
      update issues set status = 'attributed', resolved_at = now(), resolved_by = 7, reason = 'Seen.', transaction_id = t.transaction_id,
        order_id = t.order_id
      from transactions t where 'transaction:' || t.transaction_id = ${payment} and account_key = ${`statement:${bank}`}
        and issues.amount_minor = 1000`;
    await closeAll(world);

    await world.importLines(bank, [credit("third", "2026-03-20", 1000), credit("fourth", "2026-03-21", 2000)]);
    const outcome = await world.run(bank);

    expect(outcome.lines).toMatchObject({ first: "matched", third: "unmatched_money", fourth: "unmatched_money" });
    expect((await states()).toSorted()).toEqual(["1000 attributed", "1000 open", "2000 closed", "2000 open"]);
  });

  test("a reference that repeats in another year is another issue", async () => {
    const world = await running.openWorld();
    await world.importLines(world.qrAccountId, [
      lineOf("this year", 1000, { providerReference: "77" }),
      lineOf("last year", 900, { providerReference: "77", day: "2025-03-10" }),
    ]);
    const days = { from: "2025-03-01", to: "2026-03-31" };
    expect((await world.run(world.qrAccountId, days)).kinds).toEqual(["unmatched_money", "unmatched_money"]);
  });

  const uses = [
    { name: "old", amountMinor: 700, month: "2025-07" },
    { name: "new", amountMinor: 900, month: "2026-03" },
  ];
  test.each([
    { order: "oldest first", imported: uses },
    { order: "newest first", imported: uses.toReversed() },
  ])(
    "a payout reference that is used again, imported $order: both payouts match, and keep their names",
    async ({ imported }) => {
      const world = await running.openWorld();
      const bank = await world.addAccount("bank");
      const reference = `payout:${world.terminalAccountId}:reference:45:EUR`;
      const names = async () => {
        const rows = await world.database<{ name: string }[]>`
        select payment_key as name from match_payments join statement_matches using (match_id)
        where account_id = ${bank} order by match_id`;
        return rows.map(({ name }) => name.replace(reference, ""));
      };
      const importPayout = async ({ name, amountMinor, month }: (typeof uses)[number]) => {
        const days = { from: `${month}-01`, to: `${month}-31` };
        const line = { payoutReference: "45", day: `${month}-10` };
        const lines: readonly Line[] = [
          { ...line, name: `${name} sale`, kind: "adjustment", amountMinor },
          { ...line, name: `${name} payout`, kind: "payout", amountMinor: -amountMinor },
        ];
        await world.importLines(world.terminalAccountId, lines, days);
        return { days, line };
      };
      for (const use of imported) {
        const { name, amountMinor } = use;
        const { days, line } = await importPayout(use);
        await world.importLines(bank, [{ ...line, name: `${name} credit`, kind: "bank_credit", amountMinor }], days);
        expect((await world.run(world.terminalAccountId, days)).lines).toMatchObject({ [`${name} payout`]: "matched" });
        expect(await world.run(bank, days)).toMatchObject({ kinds: [], lines: { [`${name} credit`]: "matched" } });
      }
      const whole = { from: "2025-07-01", to: "2026-03-31" };
      const before = await names();
      expect(before).toEqual(["", `:${imported[1]?.month}-10`]);
      for (const { name, month } of uses) {
        const earlier = {
          name: `${name} earlier`,
          kind: "fee",
          amountMinor: 0,
          payoutReference: "45",
          day: `${month}-01`,
        } as const;
        await world.importLines(world.terminalAccountId, [earlier], whole);
      }
      const { lines } = await world.run(world.terminalAccountId, whole);
      expect(lines).toMatchObject({ "old payout": "matched", "new payout": "matched" });
      const credits = { "old credit": "matched", "new credit": "matched" };
      expect(await world.run(bank, whole)).toMatchObject({ kinds: [], lines: credits });
      expect(await names()).toEqual(before);

      await world.withdraw(world.terminalAccountId);
      for (const use of imported.toReversed()) await importPayout(use);
      await world.run(world.terminalAccountId, whole);
      expect(await world.run(bank, whole)).toMatchObject({ kinds: [], lines: credits });
      expect(await names(), "after its files were imported again").toEqual(before);
    },
  );

  test("two payouts with one reference, in runs of other days: both match together, and their issue ends", async () => {
    const { terminalAccountId: account, ...world } = await running.openWorld();
    const importPayout = async (name: string, day: string, sale: number, payout: number) => {
      const line = { payoutReference: "45", day };
      await world.importLines(account, [
        { ...line, name: `${name} sale`, kind: "adjustment", amountMinor: sale },
        { ...line, name: `${name} payout`, kind: "payout", amountMinor: -payout },
      ]);
      return await world.run(account, { from: day, to: day });
    };
    expect((await importPayout("first", "2026-01-10", 500, 600)).kinds).toEqual(["batch_total_mismatch"]);
    const { lines } = await importPayout("second", "2026-04-10", 600, 500);
    expect(lines).toMatchObject({ "first payout": "matched", "second payout": "matched" });
    const issues = await world.database`select status from issues where organization_id = ${world.organizationId}`;
    expect(issues).toMatchObject([{ status: "ended" }]);
  });

  test("a closed difference stays closed when its file is withdrawn and imported again", async () => {
    const world = await running.openWorld();
    await world.pay({ reference: "a", amountMinor: 1000 });
    const lines = [lineOf("a", 1010), lineOf("stray", 500)];
    await world.importLines(world.qrAccountId, lines);
    await world.run(world.qrAccountId);
    await closeAll(world);
    await world.withdraw(world.qrAccountId);
    expect((await world.run(world.qrAccountId)).kinds).toEqual([]);

    await world.importLines(world.qrAccountId, lines.toReversed());

    expect((await world.run(world.qrAccountId)).kinds).toEqual(["amount_over", "unmatched_money"]);
    expect((await issuesOf(world)).map(({ status }) => status)).toEqual(["closed", "closed"]);
  });

  test("a closed difference: other evidence is a new issue; with the earlier evidence it is closed again", async () => {
    const world = await running.openWorld();
    const importAndRun = async (amountMinor: number) => {
      await world.importLines(world.qrAccountId, [lineOf("R", amountMinor)]);
      await world.run(world.qrAccountId);
    };
    await importAndRun(500);
    await closeAll(world);
    for (const [amountMinor, status] of [[600, "open"] as const, [500, "ended"] as const]) {
      await world.withdraw(world.qrAccountId);
      await importAndRun(amountMinor);
      expect(await issuesOf(world)).toMatchObject([{ status: "closed" }, { status, generation: 2 }]);
    }
  });

  test("each malformed row of a file is an issue, which ends with its file", async () => {
    const world = await running.openWorld();
    const importId = await world.importLines(world.qrAccountId, []);
    await world.database`
      insert into statement_malformed (import_id, position, column_name, reason, raw)
      select ${importId}, position, 'Betrag', 'The amount cannot be read.', 'x;y;z' from generate_series(2, 3) as position`;
    expect((await world.run(world.qrAccountId)).kinds).toEqual(["malformed_line", "malformed_line"]);
    await closeAll(world);
    await world.run(world.qrAccountId);
    expect((await issuesOf(world)).map(({ status }) => status)).toEqual(["closed", "closed"]);

    await world.withdraw(world.qrAccountId);
    expect((await world.run(world.qrAccountId)).kinds).toEqual([]);
  });

  test("a test payment never matches a live line", async () => {
    const world = await running.openWorld();
    await world.database`update statement_accounts set mode = 'test' where account_id = ${world.qrAccountId}`;
    await world.pay({ reference: "a", amountMinor: 1000 });
    await world.importLines(world.qrAccountId, [lineOf("a", 1000)]);
    expect((await world.run(world.qrAccountId)).kinds).toEqual(["unmatched_money"]);
  });

  test("a report after the end of the collection explains the line as late money", async () => {
    const world = await running.openWorld();
    await world.reportLate("late-77");
    await world.importLines(world.terminalAccountId, [lineOf("late-77", 1000)]);
    expect((await world.run(world.terminalAccountId)).kinds).toEqual(["late_money"]);
  });

  test.each([
    ["a tip", { amountMinor: 1100, tipMinor: 100 }],
    ["another amount", { amountMinor: 1200 }],
    ["another currency", { currency: "CHF" }],
  ])(
    "a report after the end of the collection explains a line with %s as late money: no order has it",
    async (_, more) => {
      const world = await running.openWorld();
      await world.reportLate("late-77");
      await world.importLines(world.terminalAccountId, [lineOf("late-77", 1000, more)]);
      expect((await world.run(world.terminalAccountId)).kinds).toEqual(["late_money"]);
    },
  );

  test("a run of one day keeps the terminal that the run of a month has found", async () => {
    const world = await running.openWorld();
    const days = Array.from({ length: 20 }, (_, index) => `2026-03-${String(index + 1).padStart(2, "0")}`);
    const terminal = "T-1";
    for (const day of days) await world.pay({ reference: day, amountMinor: 1000, day });
    const elsewhere = "2026-03-20";
    await world.pay({ reference: "elsewhere", amountMinor: 700, day: elsewhere, station: world.secondStationId });
    await world.importLines(world.qrAccountId, [
      ...days.map((day) => lineOf(day, 1000, { day, terminal })),
      lineOf("elsewhere", 700, { day: elsewhere, terminal }),
    ]);
    expect((await world.run(world.qrAccountId)).kinds).toEqual(["wrong_station"]);
    expect((await world.run(world.qrAccountId, { from: elsewhere, to: elsewhere })).kinds).toEqual(["wrong_station"]);
  });

  test("the sums of matched, differing and rejected lines are the sum of all lines, by currency", async () => {
    const world = await running.openWorld();
    await world.pay({ reference: "a", amountMinor: 1000 });
    await world.importLines(world.qrAccountId, [
      lineOf("a", 1000),
      lineOf("stray", 70),
      lineOf("francs", 90, { currency: "CHF" }),
      { name: "fee", kind: "fee", amountMinor: -20 },
    ]);
    const { runId } = await world.run(world.qrAccountId);
    const [row] = await world.database`select totals from reconciliation_runs where run_id = ${runId}`;
    const sums = { lines: 1, matchedMinor: "0", rejectedMinor: "0" };
    expect(row?.["totals"]).toEqual([
      { currency: "CHF", ...sums, totalMinor: "90", differingMinor: "90" },
      {
        currency: "EUR",
        lines: 3,
        totalMinor: "1050",
        matchedMinor: "1000",
        differingMinor: "70",
        rejectedMinor: "-20",
      },
    ]);
  });
});

describe("a run that fails", () => {
  /** Each table is written by another step of a run. The last step records the end of the run. */
  const TABLES = [
    "statement_matches",
    "match_payments",
    "issues",
    "run_differences",
    "line_outcomes",
    "provider_events",
  ];

  test(`leaves no row when one of ${TABLES.join(", ")} cannot be written, and the next run finds the same`, async () => {
    const world = await running.openWorld();
    const { database, organizationId } = world;
    await world.pay({ reference: "a", amountMinor: 1000 });
    await world.pay({ reference: "b", amountMinor: 1100 });
    await world.importLines(world.qrAccountId, [lineOf("b", 1100)]);
    await world.run(world.qrAccountId);
    await world.importLines(world.qrAccountId, [lineOf("a", 1000), lineOf("stray", 500)]);
    const stored = async () => [
      await issuesOf(world),
      await database`select match_id, line_id from match_lines join statement_matches using (match_id)
        where account_id = ${world.qrAccountId} order by 1, 2`,
      await database`select outcome, reason from line_outcomes where account_id = ${world.qrAccountId} order by line_id`,
      await database`select kind, payload from outbox where key = ${`organization.${organizationId}`} order by outbox_id`,
    ];
    const before = await stored();
    for (const table of TABLES) {
      await database.unsafe(`
        create function fail_now() returns trigger language plpgsql as $$ begin raise exception 'A fault in ${table}.'; end $$;
        create trigger fail_now before insert or update or delete on ${table} execute function fail_now()`);
      try {
        await expect(world.run(world.qrAccountId)).rejects.toThrow(`A fault in ${table}.`);
      } finally {
        await database.unsafe(`drop trigger fail_now on ${table}; drop function fail_now()`);
      }
      expect(await stored()).toEqual(before);
      const [failed] = await database`
        select status, failure from reconciliation_runs where account_id = ${world.qrAccountId} order by run_id desc limit 1`;
      expect(failed).toMatchObject({ status: "failed", failure: `A fault in ${table}.` });
    }

    expect(await world.run(world.qrAccountId)).toMatchObject({
      kinds: ["unmatched_money"],
      lines: { a: "matched", b: "matched", stray: "unmatched_money" },
    });
  });

  test("issues that a run opens, changes and explains: the outbox gets their events", async () => {
    const world = await running.openWorld();
    await world.pay({ reference: "a", amountMinor: 1000 });
    await world.importLines(world.qrAccountId, [lineOf("b", 700)]);
    await world.run(world.qrAccountId);
    await world.importLines(world.qrAccountId, [lineOf("a", 1000)]);
    await world.run(world.qrAccountId);
    await world.database`
      update statement_lines set amount_minor = 701 where account_id = ${world.qrAccountId} and amount_minor = 700`;
    await world.run(world.qrAccountId);
    await world.run(world.qrAccountId);
    const rows = await world.database<{ event: { type: string; issues: { kind: string }[] } }[]>`
      select payload -> 'event' as event from outbox
      where kind = 'issue_event' and key = ${`organization.${world.organizationId}`} order by outbox_id`;
    expect(rows.map(({ event }) => [event.type, ...event.issues.map(({ kind }) => kind).toSorted()])).toEqual([
      ["issues_opened", "missing_in_statement", "unmatched_money"],
      ["issues_closed", "missing_in_statement"],
      ["issues_changed", "unmatched_money"],
    ]);
  });
});
