/** The kinds of differences and their rules: the guide names them, and the SQL of a run follows them. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { STATEMENT_ISSUE_KINDS } from "../../services/bus/messages/issues.ts";
import { FULL_SCORE, RUN_KINDS } from "../../services/reconciliation/kinds.ts";
import { amountDifference, roundedToCoin, scoreOf } from "./matching/rules.ts";
import { type RunDatabase, startRunDatabase } from "./matching/run-world.ts";

describe("the kinds of differences", () => {
  const guide = readFileSync(join(import.meta.dirname, "..", "..", "docs", "reconciliation.md"), "utf8");
  /** The first cells of the table with this head. */
  const firstCells = (head: string): string[] => {
    const [rows = ""] = (guide.split(`${head}\n`)[1] ?? "").split("\n\n");
    return [...rows.matchAll(/^\| `(\w+)` \|/gm)].map(([, cell = ""]) => cell);
  };

  test("each kind that only a run raises is one of them, and the guide has all in the order in which they are judged", () => {
    const kinds: readonly string[] = RUN_KINDS;
    expect(STATEMENT_ISSUE_KINDS.filter((kind) => !kinds.includes(kind))).toEqual([]);
    expect(firstCells("| kind | about | when | what to do |")).toEqual(kinds);
  });

  test("the guide has the reasons that the SQL of a run gives for a rejected line", () => {
    const folder = join(import.meta.dirname, "..", "..", "services", "reconciliation", "sql");
    const sql = globSync(join(folder, "*.ts")).map((file) => readFileSync(file, "utf8"));
    const reasons = firstCells("| reason | what it is |");
    expect(reasons.length).toBeGreaterThan(5);
    expect(reasons.filter((reason) => !sql.some((text) => text.includes(`'${reason}'`)))).toEqual([]);
  });
});

describe("how amounts differ", () => {
  test("half of a coin rounds up, and a currency without such a coin never rounds", () => {
    expect([1242n, 1243n, 1247n, 1248n].map((minor) => roundedToCoin(minor, "CHF"))).toEqual([
      1240n,
      1245n,
      1245n,
      1250n,
    ]);
    expect(roundedToCoin(1243n, "EUR")).toBe(1243n);
  });

  test("a candidate scores 100 only where all facts agree", () => {
    const sum = (facts: Parameters<typeof scoreOf>[0]): number =>
      Object.values(scoreOf(facts)).reduce((total, part) => total + part, 0);
    expect(sum({ daysApart: 0, minutesApart: 3, isTerminalOfStation: true, isReferenceInText: true })).toBe(FULL_SCORE);
    expect(sum({ daysApart: 9, minutesApart: undefined, isTerminalOfStation: false, isReferenceInText: false })).toBe(
      40,
    );
  });
});

describe("the SQL of a run", () => {
  let running: RunDatabase;
  beforeAll(async () => {
    running = await startRunDatabase();
  });
  afterAll(() => running.stop());

  test("gives each difference of amounts the kind that the rule gives", async () => {
    const world = await running.openWorld();
    const pairs = fc.sample(
      fc.record({
        amountMinor: fc.integer({ min: 100, max: 2_000 }),
        change: fc.constantFrom(0, 1, -1, 2, -2, 100, -100),
        tipMinor: fc.constantFrom(undefined, 1, 100),
        sign: fc.constantFrom(1, 1, 1, -1),
        currency: fc.constantFrom("EUR", "CHF"),
        isOther: fc.constantFrom(false, false, false, true),
      }),
      { numRuns: 100, seed: 13 },
    );
    const lines = [];
    const expected: Record<string, string> = {};
    for (const [index, pair] of pairs.entries()) {
      const name = `pair-${index}`;
      await world.pay({ reference: name, amountMinor: pair.amountMinor, currency: pair.currency });
      const lineMinor = pair.sign * (pair.amountMinor + pair.change);
      const currency = pair.isOther ? "SEK" : pair.currency;
      const { tipMinor } = pair;
      lines.push({
        name,
        providerReference: name,
        amountMinor: lineMinor,
        currency,
        ...(tipMinor === undefined ? {} : { tipMinor }),
      });
      expected[name] =
        amountDifference({
          lineMinor: BigInt(lineMinor),
          lineCurrency: currency,
          tipMinor: tipMinor === undefined ? undefined : BigInt(tipMinor),
          paymentMinor: BigInt(pair.amountMinor),
          paymentCurrency: pair.currency,
        }) ?? "matched";
    }
    await world.importLines(world.qrAccountId, lines);
    expect((await world.run(world.qrAccountId)).lines).toEqual(expected);
    // The sample has every outcome.
    expect(new Set(Object.values(expected)).size).toBe(7);
  });

  test("scores each candidate as the rule does", async () => {
    const world = await running.openWorld();
    const cases = [
      { day: "2026-03-10", text: "", time: "12:04:00", daysApart: 0, minutesApart: 4, isReferenceInText: false },
      { day: "2026-03-10", text: "", time: "12:44:00", daysApart: 0, minutesApart: 44, isReferenceInText: false },
      { day: "2026-03-13", text: "", time: undefined, daysApart: 3, minutesApart: undefined, isReferenceInText: false },
      {
        day: "2026-03-14",
        text: "paid with WANTED-3 today",
        time: "11:59:00",
        daysApart: 4,
        minutesApart: 4 * 24 * 60 - 1,
        isReferenceInText: true,
      },
    ];
    const lines = [];
    for (const [index, { day, text, time }] of cases.entries()) {
      await world.pay({ reference: `wanted-${index}`, amountMinor: 1000 + index });
      const occurredAt = time === undefined ? {} : { occurredAt: `${day}T${time}Z` };
      const line = { name: `line-${index}`, providerReference: `other-${index}`, amountMinor: 1000 + index, day, text };
      lines.push({ ...line, ...occurredAt });
    }
    await world.importLines(world.qrAccountId, lines);
    await world.run(world.qrAccountId);
    const rows = await world.database<{ explanation: Record<string, number> }[]>`
      select explanation - 'daysApart' - 'minutesApart' as explanation from line_candidates c join statement_lines l using (line_id)
      where l.account_id = ${world.qrAccountId} order by l.amount_minor`;
    const expected = cases.map((one) => scoreOf({ ...one, isTerminalOfStation: false }));
    expect(rows.map(({ explanation }) => explanation)).toEqual(expected);
  });
});
