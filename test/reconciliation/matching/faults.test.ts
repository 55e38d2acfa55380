/** The confusion matrix: a matching statement, and one fault in it. Each fault gives its kind, and nothing else. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RUN_KINDS, type RunKind } from "../../../services/reconciliation/kinds.ts";
import { close } from "../closings/closing-world.ts";
import { DAY, type Line, ourReference, type RunDatabase, type RunWorld, startRunDatabase } from "./run-world.ts";

let running: RunDatabase;
beforeAll(async () => {
  running = await startRunDatabase();
});
afterAll(() => running.stop());

const REFERENCES = ["aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff", "gggg", "hhhh", "iiii", "jjjj"].map(
  (word) => `tx-${word}`,
);
/** The reference of the line that the faults change. */
const FAULTY = "tx-cccc";

/** Ten payments of different amounts, whose lines come from one terminal of the station. */
const amountOf = (reference: string): number => 1000 + REFERENCES.indexOf(reference) * 111;

function fittingLines(): Line[] {
  return REFERENCES.map((reference) => ({
    name: reference,
    amountMinor: amountOf(reference),
    providerReference: reference,
    terminal: "T-1",
  }));
}

interface Fault {
  /** Changes the lines; the payments are those of the references. */
  readonly lines?: (lines: readonly Line[], world: RunWorld) => readonly Line[];
  /** Settles more payments. */
  readonly before?: (world: RunWorld) => Promise<unknown>;
  /** Imports more lines. */
  readonly after?: (world: RunWorld, importId: number) => Promise<unknown>;
  /** The payments are card payments at a terminal instead of QR payments. */
  readonly atTerminal?: boolean;
  /** The station of the payment that the fault is about. */
  readonly station?: (world: RunWorld) => number;
  readonly kinds: readonly RunKind[];
  readonly rejected?: Readonly<Record<string, string>>;
  /** Lines that `after` imports. */
  readonly added?: number;
}

const changed =
  (change: Partial<Line>) =>
  (lines: readonly Line[]): readonly Line[] =>
    lines.map((line) => (line.name === FAULTY ? { ...line, ...change } : line));
const added =
  (...more: Line[]) =>
  (lines: readonly Line[]): readonly Line[] => [...lines, ...more];

const EQUAL: Line = { name: "equal-1", amountMinor: 555, text: "CARD", day: "2026-03-11" };

/** More than `RUN_LIMITS.candidates`. */
const COFFEES = Array.from({ length: 21 }, (_, index) => `coffee-${index}`);

const FAULTS: Record<string, Fault> = {
  none: { kinds: [] },
  "none, at terminals": { atTerminal: true, kinds: [] },
  "a line dropped": {
    lines: (lines) => lines.filter(({ name }) => name !== FAULTY),
    kinds: ["missing_in_statement"],
  },
  "a terminal's line dropped": {
    atTerminal: true,
    lines: (lines) => lines.filter(({ name }) => name !== FAULTY),
    kinds: ["missing_in_statement"],
  },
  "a charge doubled": {
    lines: added({ name: "second", amountMinor: amountOf(FAULTY), providerReference: FAULTY, terminal: "T-1" }),
    kinds: ["duplicate_in_statement"],
  },
  "one minor unit more": {
    lines: changed({ amountMinor: amountOf(FAULTY) + 1 }),
    kinds: ["amount_over"],
  },
  "one minor unit less": {
    lines: changed({ amountMinor: amountOf(FAULTY) - 1 }),
    kinds: ["amount_under"],
  },
  "another currency": { lines: changed({ currency: "CHF" }), kinds: ["currency_mismatch"] },
  "a rounding to the smallest coin": {
    before: (world) => world.pay({ reference: "tx-more", amountMinor: 1242, currency: "CHF" }),
    lines: added({ name: "francs", amountMinor: 1240, currency: "CHF", providerReference: "tx-more" }),
    kinds: ["rounding"],
  },
  "another sign": { lines: changed({ amountMinor: -amountOf(FAULTY) }), kinds: ["direction_mismatch"] },
  "a tip inside the amount": {
    lines: changed({ amountMinor: amountOf(FAULTY) + 100, tipMinor: 100 }),
    kinds: ["tip"],
  },
  "a fee that does not add up": {
    lines: changed({ feeMinor: -20, netMinor: amountOf(FAULTY) - 21 }),
    kinds: ["fee_mismatch"],
  },
  "a fee that adds up": { lines: changed({ feeMinor: -20, netMinor: amountOf(FAULTY) - 20 }), kinds: [] },
  "a late booking": { lines: changed({ day: "2026-03-29" }), kinds: ["date_out_of_window"] },
  "a station of another filial": {
    atTerminal: true,
    station: ({ otherStationId }) => otherStationId,
    kinds: ["wrong_station"],
  },
  "a terminal of another station": { station: ({ secondStationId }) => secondStationId, kinds: ["wrong_station"] },
  "another reference": { lines: changed({ providerReference: "unknown-1" }), kinds: ["reference_mismatch"] },
  "another reference, and two payments that fit": {
    lines: changed({ providerReference: "unknown-1" }),
    before: (world) => world.pay({ reference: "tx-more", amountMinor: amountOf(FAULTY) }),
    kinds: ["ambiguous_match"],
  },
  "a line without a payment": {
    lines: added({ name: "stray", amountMinor: 777, providerReference: "stray-1" }),
    kinds: ["unmatched_money"],
  },
  "a payment shown as failed": {
    lines: changed({ kind: "not_money" }),
    kinds: ["status_mismatch"],
    rejected: { [FAULTY]: "not_money" },
  },
  "a card payment shown as cash": {
    atTerminal: true,
    lines: changed({ kind: "cash_payment" }),
    kinds: ["status_mismatch"],
    rejected: { [FAULTY]: "cash_not_compared" },
  },
  "equal rows with one reference of the merchant": {
    before: (world) => world.pay({ reference: "tx-more", amountMinor: 555 }),
    lines: (lines, { organizationId }) => {
      const line = { amountMinor: 555, merchantReference: ourReference(organizationId, "tx-more") };
      return [...lines, { name: "equal-1", ...line }, { name: "equal-2", ...line }];
    },
    kinds: ["duplicate_in_statement"],
  },
  "equal rows without a reference or a payment": {
    lines: added(
      { name: "equal-1", amountMinor: 555, text: "CARD" },
      { name: "equal-2", amountMinor: 555, text: "CARD" },
    ),
    kinds: ["unmatched_money", "unmatched_money"],
  },
  "equal rows without a reference, and one payment": {
    before: (world) => world.pay({ reference: "tx-more", amountMinor: 555 }),
    lines: added(
      { name: "equal-1", amountMinor: 555, text: "CARD" },
      { name: "equal-2", amountMinor: 555, text: "CARD" },
    ),
    kinds: ["ambiguous_match", "ambiguous_match"],
  },
  "more equal rows without a reference than a line can have candidates, and their payments": {
    before: async (world) => {
      for (const coffee of COFFEES) await world.pay({ reference: `tx-${coffee}`, amountMinor: 300 });
    },
    lines: added(...COFFEES.map((name) => ({ name, amountMinor: 300, text: "CARD" }))),
    kinds: COFFEES.map(() => "ambiguous_match"),
  },
  "a refund": {
    lines: added({ name: "refund", kind: "refund", amountMinor: -1000, paymentReference: "tx-aaaa" }),
    kinds: ["refund_not_registered"],
  },
  "a chargeback": {
    lines: added({ name: "chargeback", kind: "chargeback", amountMinor: -1000, paymentReference: "tx-aaaa" }),
    kinds: ["chargeback_not_registered"],
  },
  "a planned payout": {
    lines: added({ name: "planned", kind: "planned_payout", amountMinor: -1000 }),
    kinds: [],
    rejected: { planned: "planned_payout" },
  },
  "fees, adjustments, conversions": {
    lines: added(
      { name: "fee", kind: "fee", amountMinor: -10 },
      { name: "adjustment", kind: "adjustment", amountMinor: -10 },
      { name: "conversion", kind: "conversion", amountMinor: -10 },
    ),
    kinds: [],
    rejected: { fee: "fee", adjustment: "adjustment", conversion: "conversion" },
  },
  "a payout without a reference": {
    lines: added({ name: "instant", kind: "payout", amountMinor: -1000 }),
    kinds: [],
    rejected: { instant: "payout_without_lines" },
  },
  "a cash row without a reference": {
    lines: added({ name: "cash", kind: "cash_payment", amountMinor: 1000 }),
    kinds: [],
    rejected: { cash: "cash_not_compared" },
  },
  "a payout of its lines": {
    lines: (lines) => [
      ...lines.map((line) => ({ ...line, payoutReference: "P-1" })),
      { name: "payout", kind: "payout", amountMinor: -sumOf(lines), payoutReference: "P-1" },
    ],
    kinds: [],
  },
  "a payout of another sum than its lines": {
    lines: (lines) => [
      ...lines.map((line) => ({ ...line, payoutReference: "P-1" })),
      { name: "payout", kind: "payout", amountMinor: -sumOf(lines) - 2, payoutReference: "P-1" },
    ],
    kinds: ["batch_total_mismatch"],
  },
  "a charge whose success was reported too late": {
    atTerminal: true,
    before: (world) => world.reportLate("late-4711"),
    lines: added({ name: "late", amountMinor: 1000, providerReference: "late-4711" }),
    kinds: ["late_money"],
  },
  "a row that cannot be read": {
    after: ({ database }, importId) => database`
      insert into statement_malformed (import_id, position, column_name, reason, raw)
      values (${importId}, 99, 'Amount', 'The amount cannot be read.', 'x;y')`,
    kinds: ["malformed_line"],
  },
  "an equal row that an overlapping file does not have": {
    before: async (world) => {
      for (const reference of ["tx-1st", "tx-2nd"]) await world.pay({ reference, amountMinor: 555, day: "2026-03-11" });
    },
    lines: added(EQUAL, { ...EQUAL, name: "equal-2" }),
    after: (world) => world.importLines(world.qrAccountId, [EQUAL]),
    // The other row has two matching payments.
    kinds: ["ambiguous_match", "possible_duplicate"],
  },
  "a line that comes after the closing of its day": {
    after: async (world) => {
      const { database, organizationId, qrAccountId } = world;
      await world.run(qrAccountId);
      await database`delete from wanted_runs where organization_id = ${organizationId}`;
      await close(world, qrAccountId, { fromDate: DAY });
      await world.importLines(qrAccountId, [{ name: "later", kind: "fee", amountMinor: -10 }]);
    },
    kinds: ["after_closing"],
    rejected: { later: "fee" },
    added: 1,
  },
  "a row without an amount": {
    lines: added({ name: "nothing", amountMinor: 0, providerReference: "zero" }),
    kinds: [],
    rejected: { nothing: "not_money" },
  },
};

const sumOf = (lines: readonly Line[]): number => lines.reduce((sum, { amountMinor = 0 }) => sum + amountMinor, 0);

describe("a statement with one fault", () => {
  test("each kind of difference has its fault", () => {
    const kinds = new Set(Object.values(FAULTS).flatMap((fault) => fault.kinds));
    expect([...kinds].toSorted()).toEqual([...RUN_KINDS].toSorted());
  });

  test.each(Object.entries(FAULTS))("%s: the run finds the expected differences only", async (_name, fault) => {
    const world = await running.openWorld();
    for (const reference of REFERENCES) {
      const station = reference === FAULTY ? fault.station?.(world) : undefined;
      const route = fault.atTerminal === true ? "attested_terminal" : "dynamic_qr";
      await world.pay({ reference, amountMinor: amountOf(reference), route, station: station ?? world.stationId });
    }
    await fault.before?.(world);
    const accountId = fault.atTerminal === true ? world.terminalAccountId : world.qrAccountId;
    const lines = fault.lines?.(fittingLines(), world) ?? fittingLines();
    const importId = await world.importLines(accountId, lines);
    await fault.after?.(world, importId);

    const outcome = await world.run(accountId);

    expect(outcome.kinds).toEqual([...fault.kinds].toSorted());
    for (const [name, reason] of Object.entries(fault.rejected ?? {})) {
      expect(outcome.lines[name]).toBe(`rejected: ${reason}`);
    }
    // Each line is matched, explained by one issue, or rejected with a reason.
    const others = Object.entries(outcome.lines).filter(
      ([, word]) => word !== "matched" && !word.startsWith("rejected: ") && !fault.kinds.includes(word as RunKind),
    );
    expect(others).toEqual([]);
    expect(Object.keys(outcome.lines)).toHaveLength(lines.length + (fault.added ?? 0));
  });
});
