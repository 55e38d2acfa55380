/** What a run expects of an account's statements: which days, which payments and which payouts. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  DAY,
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

describe("days", () => {
  test("a payment in a long gap between two files is not missing; a payment on a covered day is", async () => {
    const world = await running.openWorld();
    await world.pay({ reference: "in-gap", amountMinor: 500, day: "2026-03-15" });
    await world.pay({ reference: "covered", amountMinor: 600, day: "2026-03-04" });
    await world.importLines(world.qrAccountId, [], { from: "2026-03-01", to: "2026-03-05" });
    await world.importLines(world.qrAccountId, [], { from: "2026-03-08", to: "2026-03-10" });
    await world.importLines(world.qrAccountId, [], { from: "2026-03-20", to: "2026-03-31" });

    const { runId, kinds } = await world.run(world.qrAccountId);

    expect(kinds).toEqual(["missing_in_statement"]);
    const rows = await world.database`select on_date::text as on_date from run_differences where run_id = ${runId}`;
    expect(rows.map((row) => row["on_date"])).toEqual(["2026-03-04"]);
  });

  test("a payment is missing only after the settlement delay of its account", async () => {
    const world = await running.openWorld();
    await world.pay({ reference: "late", amountMinor: 500, day: "2026-03-29" });
    await world.importLines(world.qrAccountId, []);
    expect((await world.run(world.qrAccountId)).kinds).toEqual([]);

    await world.database`update statement_accounts set settlement_delay_days = 2 where account_id = ${world.qrAccountId}`;
    expect((await world.run(world.qrAccountId)).kinds).toEqual(["missing_in_statement"]);
  });

  test("a run over some of the days keeps the results of a longer run", async () => {
    const world = await running.openWorld();
    await world.pay({ reference: "a", amountMinor: 500, day: "2026-03-19" });
    await world.pay({ reference: "b", amountMinor: 600, day: "2026-03-19" });
    await world.importLines(world.qrAccountId, [lineOf("b", 600, { day: "2026-03-21" })]);
    expect((await world.run(world.qrAccountId)).kinds).toEqual(["missing_in_statement"]);

    const { kinds } = await world.run(world.qrAccountId, { from: "2026-03-10", to: "2026-03-20" });

    expect(kinds).toEqual(["missing_in_statement"]);
    expect((await world.run(world.qrAccountId, { from: "2026-03-20", to: "2026-03-31" })).kinds).toEqual([]);
    const issues = await world.database`select status from issues where organization_id = ${world.organizationId}`;
    expect(issues.map((row) => row["status"])).toEqual(["open"]);
  });

  test("a difference that a corrected file has on another day: a run over the earlier day does not end it", async () => {
    const world = await running.openWorld();
    const account = world.qrAccountId;
    const statusOf = async () =>
      (await world.database`select status from issues where organization_id = ${world.organizationId}`)[0];
    await world.importLines(account, [lineOf("R", 500, { day: "2026-03-19" })]);
    await world.run(account);
    await world.withdraw(account);
    await world.run(account);
    expect(await statusOf()).toMatchObject({ status: "ended" });
    await world.importLines(account, [lineOf("R", 500, { day: "2026-03-20" })]);
    await world.run(account);

    await world.run(account, { from: "2026-03-19", to: "2026-03-19" });

    expect(await statusOf()).toMatchObject({ status: "open" });
    await world.withdraw(account);
    await world.run(account, { from: "2026-03-20", to: "2026-03-20" });
    expect(await statusOf()).toMatchObject({ status: "ended" });
  });

  test.each([
    ["a line with another amount", { kind: "payment", amountMinor: 600, providerReference: "a" }, []],
    ["a candidate", { kind: "payment", amountMinor: 500, providerReference: "typed wrong" }, []],
    [
      "a row that shows it as failed",
      { kind: "not_money", amountMinor: 500, providerReference: "a" },
      ["status_mismatch"],
    ],
  ] as const)("a payment in a run over some days is not missing when a later day has %s", async (name, row, kinds) => {
    const world = await running.openWorld();
    await world.pay({ reference: "a", amountMinor: 500, day: "2026-03-19" });
    await world.importLines(world.qrAccountId, [{ name, day: "2026-03-21", ...row }]);
    expect((await world.run(world.qrAccountId)).kinds).toHaveLength(1);

    const some = await world.run(world.qrAccountId, { from: "2026-03-10", to: "2026-03-20" });

    expect(some.kinds).toEqual(kinds);
    const issues = await world.database`select status from issues where organization_id = ${world.organizationId}`;
    expect(issues.map((issue) => issue["status"])).toEqual(["open"]);
  });

  test("a payment that the statement shows as failed: the issue has the provider's word for it", async () => {
    const world = await running.openWorld();
    await world.pay({ reference: "a", amountMinor: 500 });
    await world.importLines(world.qrAccountId, [lineOf("a", 500, { kind: "not_money" })]);
    await world.database`
      update statement_lines set provider_type = 'Sale', details = '{"not_money_reason":"Fehlgeschlagen"}'
      where account_id = ${world.qrAccountId}`;
    await world.run(world.qrAccountId);
    expect(await factsOf(world, "status_mismatch")).toMatchObject([{ status: "Fehlgeschlagen" }]);
  });

  test("a line outside the days of the run keeps its payment: a second line with its reference is a duplicate", async () => {
    const world = await running.openWorld();
    await world.pay({ reference: "a", amountMinor: 1000, day: "2026-03-02" });
    await world.importLines(world.qrAccountId, [lineOf("a", 1000, { day: "2026-03-03" })]);
    await world.run(world.qrAccountId);
    await world.importLines(world.qrAccountId, [lineOf("again", 1000, { day: "2026-03-20", providerReference: "a" })]);

    const outcome = await world.run(world.qrAccountId, { from: "2026-03-15", to: "2026-03-31" });

    expect(outcome).toMatchObject({ kinds: ["duplicate_in_statement"], lines: { a: "matched" } });
  });
});

describe("equal rows without a reference", () => {
  const row = (name: string): Line => ({ name, amountMinor: 555, text: "CARD" });

  test("in one file: several movements; in overlapping files with different counts: one is a possible duplicate", async () => {
    const world = await running.openWorld();
    await world.importLines(world.qrAccountId, [row("one"), row("two")]);
    expect((await world.run(world.qrAccountId)).kinds).toEqual(["unmatched_money", "unmatched_money"]);

    await world.importLines(world.qrAccountId, [row("one")]);

    const { lines } = await world.run(world.qrAccountId);
    expect(lines).toEqual({ one: "unmatched_money", two: "possible_duplicate" });
  });

  test("in overlapping files of one archive with different counts: one is a possible duplicate", async () => {
    const world = await running.openWorld();
    const archive = await world.importLines(world.qrAccountId, [row("one"), row("two")]);
    // The archive's second file has one of them.
    await world.database`
      insert into statement_line_sources (import_id, position, line_id)
      select ${archive}, 3, line_id from statement_line_sources where import_id = ${archive} and position = 1`;

    const { lines } = await world.run(world.qrAccountId);

    expect(lines).toEqual({ one: "unmatched_money", two: "possible_duplicate" });
  });

  test("the same count in both files: no duplicates", async () => {
    const world = await running.openWorld();
    await world.importLines(world.qrAccountId, [row("one"), row("two")]);
    await world.importLines(world.qrAccountId, [row("two"), row("one")]);
    expect((await world.run(world.qrAccountId)).kinds).toEqual(["unmatched_money", "unmatched_money"]);
  });
});

const PAYOUTS = [
  { name: "payout-1", kind: "payout", amountMinor: -3000, providerReference: "PO-12345678" },
  {
    name: "payout-2",
    kind: "payout",
    amountMinor: -4100,
    providerReference: "PO-87654321",
    payoutReference: "Batch 2",
  },
] as const;
const credit = (name: string, amountMinor: number, text: string): Line => ({
  name,
  kind: "bank_credit",
  amountMinor,
  text,
});

describe("accounts", () => {
  test("a terminal's payment is not missing at the bank of its filial", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    await world.pay({ route: "attested_terminal", reference: "SLIP-4711", amountMinor: 800 });
    await world.importLines(world.terminalAccountId, [lineOf("SLIP-4711", 800)]);
    await world.importLines(bank, [{ name: "rent", kind: "bank_credit", amountMinor: 90_000 }]);
    expect((await world.run(bank)).kinds).toEqual(["unmatched_money"]);
  });

  test("two possible accounts: the payment is missing once, and only when both cover its day", async () => {
    const world = await running.openWorld();
    const second = await world.addAccount("another");
    for (const reference of ["SLIP-4711", "SLIP-4712", "SLIP-4713"])
      await world.pay({ route: "attested_terminal", reference, amountMinor: 800 });
    await world.importLines(world.terminalAccountId, [lineOf("SLIP-4711", 800)]);
    await world.importLines(second, [lineOf("SLIP-4712", 800)], { from: "2026-03-01", to: "2026-03-02" });
    await world.importLines(second, [], { from: "2026-03-20", to: "2026-03-31" });
    await world.run(second);
    expect((await world.run(world.terminalAccountId)).kinds).toEqual([]);

    await world.importLines(second, []);
    expect((await world.run(world.terminalAccountId)).kinds).toEqual(["missing_in_statement"]);
    expect((await world.run(second)).kinds).toEqual([]);
  });

  test.each(["terminals", "a bank"])(
    "%s: a missing payment or payout stays missing when another account begins later, until it is found there",
    async (kind) => {
      const world = await running.openWorld();
      const isBank = kind === "a bank";
      const [first, later] = [await world.addAccount("first"), await world.addAccount("later")];
      const other = (name: string, day = DAY): Line =>
        isBank ? { ...credit(name, 77, name), day } : lineOf(name, 77, { day });
      if (isBank) await world.importLines(world.qrAccountId, [PAYOUTS[0]]);
      else await world.pay({ route: "attested_terminal", reference: "SLIP-4711", amountMinor: 800 });
      await world.importLines(first, [other("one")]);
      expect((await world.run(first)).kinds).toEqual(["missing_in_statement", "unmatched_money"]);

      await world.importLines(later, [other("two", "2026-03-25")], { from: "2026-03-20", to: "2026-03-31" });
      await world.run(later);
      expect((await world.run(first)).kinds).toEqual(["missing_in_statement", "unmatched_money"]);

      const found = isBank ? credit("found", 3000, "ACQUIRER PO-12345678") : lineOf("SLIP-4711", 800);
      await world.importLines(later, [found]);
      await world.run(later);
      expect((await world.run(first)).kinds).toEqual(["unmatched_money"]);
    },
  );

  test("two possible accounts: a payment that the other has with another amount is not missing", async () => {
    const world = await running.openWorld();
    const other = await world.addAccount("other terminals");
    await world.pay({ route: "attested_terminal", reference: "slip-12345", amountMinor: 500 });
    await world.pay({ route: "attested_terminal", reference: "slip-99999", amountMinor: 700 });
    await world.importLines(world.terminalAccountId, [lineOf("slip-99999", 700)]);
    await world.importLines(other, [lineOf("more", 600, { providerReference: "slip-12345" })]);
    expect((await world.run(other)).kinds).toEqual(["amount_over"]);
    expect((await world.run(world.terminalAccountId)).kinds).toEqual([]);
  });

  test("an account that replaces another one: missing days of the old account hide no missing payment", async () => {
    const world = await running.openWorld();
    const second = await world.addAccount("new terminals");
    const day = "2025-06-10";
    await world.importLines(world.terminalAccountId, [lineOf("old", 700, { day })], {
      from: "2025-06-01",
      to: "2025-06-30",
    });
    await world.importLines(second, [lineOf("new", 900)]);
    await world.pay({ route: "attested_terminal", reference: "SLIP-4712", amountMinor: 800 });
    expect((await world.run(second)).kinds).toEqual(["missing_in_statement", "unmatched_money"]);
  });

  test("an account that was replaced: a payment that was missing there is not missing again at its successor", async () => {
    const world = await running.openWorld();
    const next = await world.addAccount("new terminals");
    const june = { from: "2025-06-01", to: "2025-06-30" };
    const day = "2025-06-10";
    await world.importLines(world.terminalAccountId, [lineOf("old", 700, { day })], june);
    await world.importLines(next, [lineOf("new", 900, { day })], june);
    await world.pay({ route: "attested_terminal", reference: "SLIP-4712", amountMinor: 800, day });
    expect((await world.run(world.terminalAccountId, june)).kinds).toEqual(["missing_in_statement", "unmatched_money"]);

    // Its statements end now, long before those of its successor.
    await world.importLines(next, [lineOf("newer", 910)]);

    expect((await world.run(next, june)).kinds).toEqual(["unmatched_money"]);
  });

  const OLD_DAYS = { from: "2026-03-01", to: "2026-03-15" };
  const NEW_DAYS = { from: "2026-03-16", to: "2026-03-31" };
  const endAccount = (world: RunWorld, accountId: number) =>
    world.database`update statement_accounts set last_day = ${OLD_DAYS.to}::date where account_id = ${accountId}`;

  test("an account with a last day: a missing payment of a later day is missing at the new account at once", async () => {
    const world = await running.openWorld();
    const old = world.terminalAccountId;
    const next = await world.addAccount("new terminals");
    await world.importLines(old, [lineOf("old", 700, { day: OLD_DAYS.from })], OLD_DAYS);
    await world.importLines(next, [lineOf("new", 900, { day: "2026-03-20" })], NEW_DAYS);
    await world.pay({ route: "attested_terminal", reference: "SLIP-4711", amountMinor: 800, day: OLD_DAYS.to });
    await world.pay({ route: "attested_terminal", reference: "SLIP-4712", amountMinor: 810, day: NEW_DAYS.from });
    expect((await world.run(next)).kinds, "the old one may still show it").toEqual(["unmatched_money"]);

    await endAccount(world, old);

    const missing = ["missing_in_statement", "unmatched_money"];
    const { runId, kinds } = await world.run(next);
    expect(kinds).toEqual(missing);
    const days = await world.database`
      select on_date::text as day from run_differences where run_id = ${runId} and kind = 'missing_in_statement'`;
    expect(days).toMatchObject([{ day: NEW_DAYS.from }]);
    // Its statements end with its last day, so no settlement delay is awaited.
    expect((await world.run(old)).kinds).toEqual(missing);
  });

  test("a bank with a last day: a payout of later days is missing at the new bank", async () => {
    const world = await running.openWorld();
    const [old, next] = [await world.addAccount("old bank"), await world.addAccount("new bank")];
    await world.importLines(world.qrAccountId, [{ ...PAYOUTS[0], day: "2026-03-20" }]);
    await world.importLines(old, [{ ...credit("one", 77, "RENT"), day: OLD_DAYS.from }], OLD_DAYS);
    await world.importLines(next, [{ ...credit("two", 78, "RENT"), day: NEW_DAYS.to }], NEW_DAYS);
    expect((await world.run(next)).kinds).toEqual(["unmatched_money"]);

    await endAccount(world, old);

    expect((await world.run(next)).kinds).toEqual(["missing_in_statement", "unmatched_money"]);
    expect((await world.run(old)).kinds).toEqual(["unmatched_money"]);
  });

  test("a QR payment whose provider config has no account: an account without a config shows it", async () => {
    const world = await running.openWorld();
    await world.database`update statement_accounts set config_id = null where account_id = ${world.qrAccountId}`;
    await world.pay({ reference: "a", amountMinor: 1000 });
    const text = `CREDIT ${ourReference(world.organizationId, "a").toUpperCase()}`;
    await world.importLines(world.qrAccountId, [{ name: "credit", kind: "bank_credit", amountMinor: 1000, text }]);
    expect(await world.run(world.qrAccountId)).toMatchObject({ kinds: [], lines: { credit: "matched" } });
  });

  test("a slip's number is found in any column in which the provider has it", async () => {
    const world = await running.openWorld();
    await world.pay({ route: "attested_terminal", reference: "order 4711-a", amountMinor: 800 });
    await world.pay({ route: "smart_pos", reference: "ch_12345678", amountMinor: 900 });
    await world.importLines(world.terminalAccountId, [
      lineOf("txn-1", 800, { merchantReference: "ORDER4711-A" }),
      lineOf("txn-2", 900, { paymentReference: "ch_12345678" }),
    ]);
    expect((await world.run(world.terminalAccountId)).kinds).toEqual([]);
  });
});

describe("payouts at the bank", () => {
  test("a credit matches the payout of its lines, although the statement has no line of the payout", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    await world.importLines(world.terminalAccountId, [
      lineOf("a", 1000, { feeMinor: -20, netMinor: 980, payoutReference: "po_12345678" }),
      lineOf("b", 500, { feeMinor: -10, netMinor: 490, payoutReference: "po_12345678" }),
    ]);
    await world.importLines(bank, [
      { name: "credit", kind: "bank_credit", amountMinor: 1470, text: "ACQUIRER PO_12345678" },
    ]);
    expect(await world.run(bank)).toMatchObject({ kinds: [], lines: { credit: "matched" } });
  });

  test("payout rows of one payment each: each matches its payment, and one bank credit matches all of them", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    for (const reference of ["TAAA1111", "TBBB2222"])
      await world.pay({ route: "smart_pos", reference, amountMinor: reference === "TAAA1111" ? 1000 : 500 });
    const sale = { feeMinor: -10, terminal: "T" } as const;
    const payout = { kind: "payout", payoutReference: "900021", day: "2026-03-12" } as const;
    await world.importLines(world.terminalAccountId, [
      lineOf("sale-a", 1000, { ...sale, netMinor: 990, providerReference: "TAAA1111" }),
      lineOf("sale-b", 500, { ...sale, netMinor: 490, providerReference: "TBBB2222" }),
      lineOf("paid-a", -990, { ...payout, providerReference: "TAAA1111" }),
      lineOf("paid-b", -489, { ...payout, providerReference: "TBBB2222" }),
      lineOf("paid-a again", -990, {
        ...payout,
        payoutReference: "900022",
        day: "2026-03-13",
        providerReference: "TAAA1111",
      }),
    ]);
    await world.importLines(bank, [
      { name: "credit", kind: "bank_credit", amountMinor: 1479, text: "PAYOUT REF 900021", day: "2026-03-13" },
    ]);
    expect((await world.run(world.terminalAccountId)).lines).toEqual({
      "sale-a": "matched",
      "sale-b": "matched",
      "paid-a": "matched",
      "paid-b": "batch_total_mismatch",
      "paid-a again": "batch_total_mismatch",
    });
    expect((await world.run(bank)).lines).toEqual({ credit: "matched" });
  });

  test("a credit whose text names its fees is compared by the arrived amount", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    await world.importLines(world.terminalAccountId, [
      lineOf("a", 1000, { feeMinor: -20, payoutReference: "po_12345678" }),
    ]);
    await world.importLines(bank, [
      { name: "credit", kind: "bank_credit", amountMinor: 1000, feeMinor: -20, netMinor: 980, text: "PO_12345678" },
    ]);
    expect((await world.run(bank)).lines).toEqual({ credit: "matched" });
  });

  test("a payout of lines in other currencies is no difference", async () => {
    const world = await running.openWorld();
    await world.importLines(world.terminalAccountId, [
      lineOf("a", 1000, { payoutReference: "41" }),
      lineOf("b", 500, { payoutReference: "41", currency: "CHF" }),
      { name: "payout", kind: "payout", amountMinor: -1480, payoutReference: "41" },
    ]);
    expect((await world.run(world.terminalAccountId)).lines).toMatchObject({ payout: "rejected: payout_converted" });
  });

  test("a payout that came back is not missing at the bank", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    const payout = { payoutReference: "po_12345678", day: "2026-03-11" } as const;
    await world.importLines(world.qrAccountId, [
      { name: "payout", kind: "payout", amountMinor: -5000, ...payout },
      { name: "back", kind: "payout_reversal", amountMinor: 5000, ...payout },
    ]);
    await world.importLines(bank, [{ name: "rent", kind: "bank_credit", amountMinor: 90_000 }]);
    expect((await world.run(bank)).kinds).toEqual(["unmatched_money"]);
  });

  test("a QR payment is a candidate of the bank's credit", async () => {
    const world = await running.openWorld();
    await world.pay({ reference: "a", amountMinor: 1000 });
    await world.importLines(world.qrAccountId, [
      { name: "credit", kind: "bank_credit", amountMinor: 1000, text: "LUNCH" },
    ]);
    expect((await world.run(world.qrAccountId)).lines).toEqual({ credit: "reference_mismatch" });
  });

  const BOTH = "ACQUIRER PO-12345678 PO-87654321";

  test.each([
    ["less", 7090, "amount_under", "-10"],
    ["more", 7101, "amount_over", "1"],
  ])(
    "a credit of %s than the sum of its named payouts differs from that sum",
    async (_, arrived, kind, differenceMinor) => {
      const world = await running.openWorld();
      const bank = await world.addAccount("bank");
      await world.importLines(world.qrAccountId, PAYOUTS);
      await world.importLines(bank, [{ ...credit("credit", arrived, BOTH), day: "2026-03-12" }]);
      expect((await world.run(bank)).kinds, "and none of them is missing").toEqual([kind]);
      expect((await world.run(bank, { to: "2026-03-11" })).kinds, "nor in a run without its day").toEqual([]);
      expect(await factsOf(world, kind)).toMatchObject([{ payments: "2", sumMinor: "7100", differenceMinor }]);
      await world.database`update issues set superseded_by = issue_id where account_key = ${`statement:${bank}`}`;
      const missing = ["missing_in_statement", "missing_in_statement"];
      expect((await world.run(bank, { to: "2026-03-11" })).kinds, "unless another issue replaces it").toEqual(missing);
    },
  );

  test("a credit that names two payouts and has the amount of one: the other payout is missing", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    await world.importLines(world.qrAccountId, PAYOUTS);
    await world.importLines(bank, [credit("credit", 4100, BOTH)]);
    expect(await world.run(bank)).toMatchObject({ kinds: ["missing_in_statement"], lines: { credit: "matched" } });
  });

  test("credits that name one payout and have a smaller sum differ from it by the missing amount", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    await world.importLines(world.qrAccountId, [PAYOUTS[1]]);
    const text = "ACQUIRER PO-87654321";
    await world.importLines(bank, [credit("part-1", 2500, text), credit("part-2", 1500, text)]);
    expect((await world.run(bank)).lines).toEqual({ "part-1": "amount_under", "part-2": "amount_under" });
    const fact = { lines: "2", sumMinor: "4000", differenceMinor: "-100" };
    expect(await factsOf(world, "amount_under")).toMatchObject([fact, fact]);
  });

  test("a payout that has not arrived is missing, and the credit of another amount shows the difference", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    await world.importLines(world.qrAccountId, [
      { name: "payout-1", kind: "payout", amountMinor: -5000, providerReference: "PO-12345678" },
      { name: "payout-2", kind: "payout", amountMinor: -6000, providerReference: "PO-87654321" },
    ]);
    await world.importLines(bank, [
      { name: "credit-2", kind: "bank_credit", amountMinor: 5990, text: "ACQUIRER PO-87654321 MARCH" },
    ]);
    expect((await world.run(bank)).kinds).toEqual(["amount_under", "missing_in_statement"]);
    const [issue] = await world.database`
      select evidence #>> '{statement,facts,differenceMinor}' as difference from issues
      where organization_id = ${world.organizationId} and kind = 'amount_under'`;
    expect(issue?.["difference"]).toBe("-10");
  });

  test("a difference from a payout: follows the payout's lines, and is a new issue when it was closed before", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    const addPart = async (name: string, amountMinor: number): Promise<void> => {
      await world.importLines(world.terminalAccountId, [lineOf(name, amountMinor, { payoutReference: "po_12345678" })]);
      await world.run(bank);
    };
    await world.importLines(bank, [credit("credit", 1470, "ACQUIRER PO_12345678")]);
    await addPart("a", 1000);
    await addPart("b", 400);
    expect(await factsOf(world, "amount_over")).toMatchObject([{ differenceMinor: "70" }]);

    await world.database`
      update issues set status = 'closed', resolved_at = now(), resolved_by = 7, reason = 'Small.'
      where organization_id = ${world.organizationId} and kind = 'amount_over'`;
    await world.run(bank);
    expect(await factsOf(world, "amount_over"), "the same difference stays closed").toHaveLength(1);
    await addPart("c", 10);

    expect(await factsOf(world, "amount_over")).toMatchObject([{ differenceMinor: "70" }, { differenceMinor: "60" }]);
    const issues = await world.database`
      select status, supersedes_id is not null as supersedes from issues
      where organization_id = ${world.organizationId} and kind = 'amount_over' order by issue_id`;
    expect(issues.map((issue) => ({ ...issue }))).toEqual([
      { status: "closed", supersedes: false },
      { status: "open", supersedes: true },
    ]);
  });

  test("a credit whose text names its fees differs from its payout by the arrived amount", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    await world.importLines(world.terminalAccountId, [lineOf("a", 990, { payoutReference: "po_12345678" })]);
    const arrived = { ...credit("credit", 1000, "PO_12345678"), feeMinor: -20, netMinor: 980 };
    await world.importLines(bank, [arrived]);
    expect((await world.run(bank)).kinds).toEqual(["amount_under"]);
    expect(await factsOf(world, "amount_under")).toMatchObject([{ differenceMinor: "-10" }]);
  });

  test("two banks: a payout that arrives at none is missing once, and only when both cover its days", async () => {
    const world = await running.openWorld();
    const [first, second] = [await world.addAccount("bank"), await world.addAccount("other bank")];
    await world.importLines(world.terminalAccountId, [PAYOUTS[0]]);
    await world.importLines(first, [credit("a", 1, "A")]);
    await world.importLines(second, [credit("b", 2, "B")], { from: "2026-03-01", to: "2026-03-02" });
    await world.importLines(second, [], { from: "2026-03-20", to: "2026-03-31" });
    expect((await world.run(first)).kinds).toEqual(["unmatched_money"]);

    await world.importLines(second, [], { from: "2026-03-01", to: "2026-03-31" });
    expect((await world.run(first)).kinds).toEqual(["missing_in_statement", "unmatched_money"]);
    expect((await world.run(second)).kinds).toEqual(["unmatched_money"]);
  });

  test.each([
    ["with its amount", credit("arrived", 3000, "ACQUIRER PO-12345678"), []],
    ["with another amount", credit("arrived", 2900, "ACQUIRER PO-12345678"), ["amount_under"]],
    ["without its reference", credit("arrived", 3000, "ACQUIRER"), ["reference_mismatch"]],
  ])(
    "two banks: a payout that arrives at the second one %s is not missing at the first one",
    async (_, arrived, kinds) => {
      const world = await running.openWorld();
      const [first, second] = [await world.addAccount("bank"), await world.addAccount("other bank")];
      await world.importLines(world.terminalAccountId, [PAYOUTS[0]]);
      await world.importLines(first, [credit("a", 1, "A")]);
      await world.importLines(second, [arrived]);
      expect((await world.run(second)).kinds).toEqual(kinds);
      expect((await world.run(first)).kinds).toEqual(["unmatched_money"]);
    },
  );

  test("two banks: an import or a withdrawal at one of them starts a run of the other one too", async () => {
    const world = await running.openWorld();
    const [first, second] = [await world.addAccount("bank"), await world.addAccount("other bank")];
    const wanted = async (work: Promise<unknown>) => {
      await work;
      const rows = await world.database`
        delete from wanted_runs where organization_id = ${world.organizationId} returning account_id`;
      return new Set(rows.map((row) => row["account_id"]));
    };
    await wanted(world.importLines(first, [credit("a", 1, "A")]));
    expect(await wanted(world.importLines(second, [credit("b", 2, "B")]))).toEqual(new Set([first, second]));
    expect(await wanted(world.withdraw(second))).toEqual(new Set([first, second]));
  });

  test("a payout is not missing at a bank of another currency", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    await world.database`update statement_accounts set currency = 'CHF' where account_id = ${bank}`;
    await world.importLines(world.terminalAccountId, [PAYOUTS[0]]);
    await world.importLines(bank, [{ ...credit("a", 1, "A"), currency: "CHF" }]);
    expect((await world.run(bank)).kinds).toEqual(["unmatched_money"]);
  });

  test("a credit matches the payout whose reference a mapping has found in its text", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    await world.importLines(world.terminalAccountId, [lineOf("a", 1000, { payoutReference: "31077100" })]);
    await world.importLines(bank, [{ ...credit("credit", 1000, "SUMUP PID31077100"), payoutReference: "31077100" }]);
    expect(await world.run(bank)).toMatchObject({ kinds: [], lines: { credit: "matched" } });
  });

  test("a credit matches the payout whose reference a line break divides in its text", async () => {
    const world = await running.openWorld();
    const bank = await world.addAccount("bank");
    await world.importLines(world.qrAccountId, [PAYOUTS[0]]);
    await world.importLines(bank, [credit("credit", 3000, "ACQUIRER PAYOUT OF MARCH PO-123\n45678 THANK YOU")]);
    expect(await world.run(bank)).toMatchObject({ kinds: [], lines: { credit: "matched" } });
  });

  test("credits of a bank that name a payout are no payouts that arrive at another bank", async () => {
    const world = await running.openWorld();
    const [first, second] = [await world.addAccount("bank"), await world.addAccount("other bank")];
    await world.importLines(first, [credit("a", 1, "A")]);
    await world.importLines(second, [{ ...credit("credit", 1000, "BATCH"), payoutReference: "31077100" }]);
    expect((await world.run(first)).kinds).toEqual(["unmatched_money"]);
  });
});

async function factsOf({ database, organizationId }: RunWorld, kind: string): Promise<readonly unknown[]> {
  const rows = await database<{ facts: unknown }[]>`
    select evidence #> '{statement,facts}' as facts from issues
    where organization_id = ${organizationId} and kind = ${kind} order by issue_id`;
  return rows.map(({ facts }) => facts);
}
