import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { extractPattern } from "../../../../services/reconciliation/formats/csv/extract-pattern.ts";
import { mappedCsv, mappedRows } from "../../../../services/reconciliation/formats/csv/mapped.ts";
import {
  type CsvMapping,
  columnsOf,
  csvMappingSchema,
} from "../../../../services/reconciliation/formats/csv/mapping.ts";
import { previewRows } from "../../../../services/reconciliation/formats/csv/preview-mapping.ts";
import { type StatementLine, StatementRefusedError } from "../../../../services/reconciliation/formats/format.ts";
import { collected, dividedAt, oneChunk } from "../chunks.ts";
import { linesOf, parseText, problemsOf, sampleText } from "../samples.ts";

const BANK = {
  encoding: "windows-1252",
  delimiter: ";",
  headerRow: 4,
  skip: [{ rowBeginsWith: "Summe;" }],
  decimalSeparator: ",",
  thousandsSeparator: ".",
  currency: { column: "Währung" },
  amount: { rule: "debit_credit", debitColumn: "Soll", creditColumn: "Haben" },
  dateFormats: ["DD.MM.YYYY"],
  bookedOn: { column: "Buchungstag" },
  valueOn: { column: "Valuta" },
  kind: { column: "Art", words: { Gutschrift: "bank_credit", Lastschrift: "bank_debit" } },
  payoutReference: { column: "Verwendungszweck", extract: { pattern: "PID(\\d{6,8})" } },
  text: { columns: ["Verwendungszweck"] },
};

const TERMINAL = {
  encoding: "utf-8",
  delimiter: ",",
  headerRow: 1,
  skip: [{ column: "State", is: ["void"] }],
  decimalSeparator: ".",
  units: "minor",
  currency: { fixed: "EUR" },
  amount: { rule: "affix", column: "Amount", moneyIn: ["CR"], moneyOut: ["DR"] },
  fee: { column: "Fee", sign: "cost_is_positive" },
  tip: { column: "Tip" },
  dateFormats: ["MM/DD/YYYY"],
  bookedOn: { column: "Date", timeColumn: "Time" },
  kind: { column: "Type", words: { SALE: "payment" }, default: "refund" },
  merchantReference: { column: "Order", extract: { pattern: "Order: ([A-Z0-9-]+)" } },
  terminal: { column: "Terminal" },
};

const mapping = (stored: object): CsvMapping => csvMappingSchema.parse(stored);
const outline = (line: StatementLine): string =>
  `${line.position} ${line.kind} ${line.providerType} ${line.amountMinor} ${line.currency} ${line.bookedOn}`;

describe("a mapped CSV file", () => {
  it("debit and credit columns: rows become lines, and each wrong row is malformed with its column", async () => {
    const text = sampleText("csv/bank-windows-1252.csv", "windows-1252");
    const records = await collected(mappedCsv.parse(text, { mapping: mapping(BANK), timeZone: undefined }));
    expect(linesOf(records).map(outline)).toEqual([
      "5 bank_credit Gutschrift 123450 EUR 2026-11-02",
      "6 bank_debit Lastschrift -80000 EUR 2026-11-03",
      "13 bank_credit Gutschrift 200 EUR 2026-11-08",
    ]);
    expect(linesOf(records)[0]).toMatchObject({ payoutReference: "900001", valueOn: "2026-11-03" });
    expect(linesOf(records).map((line) => line.text)).toEqual([
      "SumUp PID900001 Auszahlung",
      "Miete\r\nNovember",
      "=1+1",
    ]);
    expect(problemsOf(records)).toEqual([
      "8 Haben: The row has an amount in both columns or in none of them.",
      '9 Buchungstag: "30.02.2026" is no date in DD.MM.YYYY.',
      '10 Art: The mapping has no kind for "Unbekannt".',
      '11 Haben: "1 234,50" has another separator than the mapping declares.',
      "12 : A quote is in the wrong place or is never closed.",
    ]);
  });

  it("minor units, a direction beside the amount, a time column and a reference in a text: rows become lines", async () => {
    const text = sampleText("csv/terminal-minor.csv");
    const records = await collected(
      mappedCsv.parse(text, { mapping: mapping(TERMINAL), timeZone: "America/New_York" }),
    );
    const [sale, refund] = linesOf(records);
    expect(linesOf(records)).toHaveLength(2);
    expect(sale).toMatchObject({
      kind: "payment",
      amountMinor: 1_250n,
      feeMinor: -25n,
      tipMinor: 100n,
      occurredAt: "2026-01-31T14:05:00.000Z",
      merchantReference: "A-17",
      terminal: "T1",
    });
    expect(refund).toMatchObject({ kind: "refund", providerType: "REFUND", amountMinor: -500n, feeMinor: 0n });
    expect(problemsOf(records)).toEqual([
      '4 Amount: "1250" has no direction that the mapping knows.',
      '5 Date: "02/31/2026" is no date in MM/DD/YYYY.',
    ]);
  });

  it.each([
    ["signed", { rule: "signed", column: "a", moneyIn: "positive" }, "5.00,", 500n],
    ["signed, the other way", { rule: "signed", column: "a", moneyIn: "negative" }, "5.00,", -500n],
    [
      "in a column",
      { rule: "direction", column: "a", directionColumn: "b", moneyIn: ["C"], moneyOut: ["D"] },
      "5.00,D",
      -500n,
    ],
    [
      "the longer of two words",
      { rule: "affix", column: "a", moneyIn: ["C", "CR"], moneyOut: ["D", "DR"] },
      "DR 5.00,",
      -500n,
    ],
    ["behind the amount", { rule: "affix", column: "a", moneyIn: ["+"], moneyOut: ["-"] }, "5.00-,", -500n],
    ["a zero beside the amount", { rule: "debit_credit", debitColumn: "a", creditColumn: "b" }, "5.00,0.00", -500n],
  ])("takes the sign by the rule: %s", async (_name, amount, values, minor) => {
    const stored = mapping({ ...SMALL, amount });
    const records = await parseText(mappedCsv, `a,b,d\n${values},2026-01-01\n`, { mapping: stored });
    expect(problemsOf(records)).toEqual([]);
    expect(linesOf(records)[0]?.amountMinor).toBe(minor);
  });

  it.each([
    ["signed", { rule: "signed", column: "a", moneyIn: "positive" }, "-5.00,", ["-4.90"]],
    ["signed, the other way", { rule: "signed", column: "a", moneyIn: "negative" }, "5.00,", ["4.90"]],
    ["debit", { rule: "debit_credit", debitColumn: "a", creditColumn: "b" }, "5.00,", ["4.90", "-4.90"]],
    [
      "in a column",
      { rule: "direction", column: "a", directionColumn: "b", moneyIn: ["C"], moneyOut: ["D"] },
      "5.00,D",
      ["4.90", "-4.90"],
    ],
  ])("gives tip and net the direction of outgoing money: %s", async (_name, amount, values, nets) => {
    const stored = mapping({ ...SMALL, amount, tip: { column: "t" }, net: { column: "n" } });
    for (const net of nets) {
      const text = `a,b,t,n,d\n${values},0.50,${net},2026-01-01\n${values},-0.50,${net},2026-01-01\n`;
      const lines = linesOf(await parseText(mappedCsv, text, { mapping: stored }));
      expect(lines.map(({ amountMinor, tipMinor, netMinor }) => [amountMinor, tipMinor, netMinor])).toEqual([
        [-500n, -50n, -490n],
        [-500n, -50n, -490n],
      ]);
    }
  });

  it.each([
    ["signed", { rule: "signed", column: "a", moneyIn: "positive" }, "5.00,"],
    ["signed, the other way", { rule: "signed", column: "a", moneyIn: "negative" }, "-5.00,"],
    ["credit", { rule: "debit_credit", debitColumn: "b", creditColumn: "a" }, "5.00,"],
  ])("gives the tip the direction of incoming money: %s", async (_name, amount, values) => {
    const stored = mapping({ ...SMALL, amount, tip: { column: "t" } });
    const text = `a,b,t,d\n${values},0.50,2026-01-01\n${values},-0.50,2026-01-01\n`;
    const lines = linesOf(await parseText(mappedCsv, text, { mapping: stored }));
    expect(lines.map(({ amountMinor, tipMinor }) => [amountMinor, tipMinor])).toEqual([
      [500n, 50n],
      [500n, 50n],
    ]);
  });

  it.each([
    ["a column that the file lacks", "x,b,d\n1,2,3\n", /has no column "a"; choose the mapping/],
    ["a column that is there twice", "a,a,d\n1,2,3\n", /has "a" more than once/],
    ["a file that ends above the header", "", /has no line 1/],
  ])("refuses %s", async (_name, text, message) => {
    const refusal = await parseText(mappedCsv, text, { mapping: mapping(SMALL) }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "mapping_refused", message: expect.stringMatching(message) });
  });

  it("refuses a stored mapping that the rules no longer allow", async () => {
    const stored = { ...mapping(SMALL), dateFormats: ["tomorrow"] };
    await expect(parseText(mappedCsv, "a,d\n", { mapping: stored })).rejects.toMatchObject({
      code: "mapping_refused",
      message: expect.stringMatching(/no longer valid \(dateFormats\.0: "tomorrow" is no format of dates\)/),
    });
  });

  it("needs a mapping, and is never detected", async () => {
    await expect(parseText(mappedCsv, "a\n1\n")).rejects.toMatchObject({ code: "mapping_refused" });
    expect(mappedCsv.detect("a,b\n")).toBe(false);
  });

  it("gives the same lines for each division into chunks, and damage throws nothing but a refusal", async () => {
    const text = (await collected(sampleText("csv/bank-windows-1252.csv", "windows-1252"))).join("");
    const options = { mapping: mapping(BANK), timeZone: "Europe/Berlin" };
    const whole = await collected(mappedCsv.parse(oneChunk(text), options));
    const damage = fc.tuple(fc.nat(), fc.constantFrom('"', "\n", ";", "\0", "x", "\r", "-", "9".repeat(30)));
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(), { maxLength: 5 }),
        fc.array(damage, { maxLength: 4 }),
        async (places, hits) => {
          expect(await collected(mappedCsv.parse(dividedAt(text, places), options))).toEqual(whole);
          const damaged = hits.reduce(
            (so, [at, what]) => so.slice(0, at % so.length) + what + so.slice((at % so.length) + 1),
            text,
          );
          const outcome = await collected(mappedCsv.parse(oneChunk(damaged), options)).catch((error: unknown) => error);
          if (!Array.isArray(outcome)) expect(outcome).toBeInstanceOf(StatementRefusedError);
        },
      ),
      { numRuns: 40 },
    );
  });
});

const SMALL = {
  encoding: "utf-8",
  delimiter: ",",
  headerRow: 1,
  decimalSeparator: ".",
  currency: { fixed: "EUR" },
  amount: { rule: "signed", column: "a", moneyIn: "positive" },
  dateFormats: ["YYYY-MM-DD"],
  bookedOn: { column: "d" },
  kind: { fixed: "payment" },
};

describe("previewRows", () => {
  it("shows each row with its line, with its problem or as skipped, up to the limit", async () => {
    const text = (await collected(sampleText("csv/bank-windows-1252.csv", "windows-1252"))).join("");
    const preview = async (limit: number) =>
      (await collected(previewRows(mappedRows(oneChunk(text), mapping(BANK), undefined)))).slice(0, limit);
    const rows = await preview(100);
    expect(rows.map(({ position, outcome }) => `${position} ${outcome.type}`)).toEqual([
      "5 line",
      "6 line",
      "8 malformed",
      "9 malformed",
      "10 malformed",
      "11 malformed",
      "12 malformed",
      "13 line",
      "14 skipped",
    ]);
    expect(rows[0]?.fields[4]).toEqual({ column: "Soll", value: "" });
    expect(rows[0]?.fields[5]).toEqual({ column: "Haben", value: "1.234,50" });
    expect(await preview(2)).toEqual(rows.slice(0, 2));
  });

  it("shows no row for a repeated header, after which the next file begins", async () => {
    const read = () => mappedRows(oneChunk("d,a\n2026-11-02,1.00\n".repeat(2)), mapping(SMALL), undefined);
    expect((await collected(read())).map(({ record }) => record?.type)).toEqual(["line", "next_file", "line"]);
    expect((await collected(previewRows(read()))).map(({ position }) => position)).toEqual([2, 4]);
  });
});

describe("csvMappingSchema", () => {
  it("stores a mapping unchanged: it parses to itself", () => {
    expect(mapping(JSON.parse(JSON.stringify(mapping(BANK))) as object)).toEqual(mapping(BANK));
    expect(columnsOf(mapping(BANK)).toSorted()).toEqual(
      ["Art", "Buchungstag", "Haben", "Soll", "Valuta", "Verwendungszweck", "Währung"].toSorted(),
    );
  });

  it.each<[string, object]>([
    ["an unknown field", { more: 1 }],
    ["ambiguous dates", { dateFormats: ["DD/MM/YYYY", "MM/DD/YYYY"] }],
    ["ambiguous short years", { dateFormats: ["DD.MM.YY", "YY.MM.DD"] }],
    ["a day and a month with nothing between them", { dateFormats: ["DMYYYY"] }],
    ["a format of dates that does not exist", { dateFormats: ["dd.mm.yyyy"] }],
    ["one separator for both", { thousandsSeparator: "." }],
    ["a currency that does not exist", { currency: { fixed: "EURO" } }],
    ["a kind that does not exist", { kind: { fixed: "sale" } }],
    ["an encoding that does not exist", { encoding: "utf-7" }],
    ["a word for both directions", { amount: { rule: "affix", column: "a", moneyIn: ["x"], moneyOut: ["x"] } }],
    ["one column for debit and credit", { amount: { rule: "debit_credit", debitColumn: "a", creditColumn: "a" } }],
    [
      "one column for the amount and its direction",
      { amount: { rule: "direction", column: "a", directionColumn: "a", moneyIn: ["C"], moneyOut: ["D"] } },
    ],
    ["a nested quantifier", { text: undefined, terminal: { column: "a", extract: { pattern: "(a+)+b" } } }],
  ])("refuses %s", (_name, change) => {
    expect(csvMappingSchema.safeParse(SMALL).success).toBe(true);
    expect(csvMappingSchema.safeParse({ ...SMALL, ...change }).success).toBe(false);
  });
});

describe("extractPattern", () => {
  it.each([
    ["ORD-(\\d+)", "paid ORD-1234 today", "1234"],
    ["[A-Z]{2}\\d{4}", "x AB1234 y", "AB1234"],
    ["(?:ref|order)[: ]*([A-Z0-9]+)", "order: A17", "A17"],
    ["^#(\\w{1,8})$", "#abc", "abc"],
    ["\\d+", "none", ""],
  ])("the pattern %s in the text %j: finds %j", (pattern, text, found) => {
    const read = extractPattern(pattern, false);
    expect("extract" in read ? read.extract(text) : read.reason).toBe(found);
  });

  it.each([
    "(a+)+",
    "(a|b)*",
    "(?=a)",
    "(?<name>a)",
    "(a)\\1",
    "a{1,1000}",
    "a+b+c+",
    "(a)(b)",
    "a|b|c|d|e|f|g|h|i",
    "a**",
    "a+?",
    "[a",
    "(a",
    "",
    "x".repeat(300),
  ])("refuses %s", (pattern) => {
    expect(extractPattern(pattern, false)).toMatchObject({ reason: expect.stringMatching(/\.$/) });
  });

  it("is quick on the worst text, and throws nothing", () => {
    const worst = extractPattern(".*.*x$", true);
    const startedAt = performance.now();
    if ("extract" in worst) worst.extract("a".repeat(100_000));
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    fc.assert(
      fc.property(fc.string({ maxLength: 20 }), fc.string({ maxLength: 50 }), (pattern, text) => {
        const read = extractPattern(pattern, false);
        if ("extract" in read) expect(typeof read.extract(text)).toBe("string");
      }),
    );
  });
});
