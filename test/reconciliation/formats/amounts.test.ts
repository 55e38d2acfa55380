import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatAmount } from "../../../machines/currency.ts";
import { currencyCode, readDecimal, readMinorUnits } from "../../../services/reconciliation/formats/amounts.ts";

const GERMAN = { decimalSeparator: ",", grouped: true } as const;
const ENGLISH = { decimalSeparator: ".", grouped: true } as const;

describe("readDecimal", () => {
  it.each([
    ["12.50", "EUR", 1250n],
    ["25", "EUR", 2500n],
    ["0.95", "EUR", 95n],
    ["-0.5", "EUR", -50n],
    ["−0.50", "EUR", -50n],
    ["+7.1", "EUR", 710n],
    [".5", "EUR", 50n],
    ["5.", "EUR", 500n],
    [" 1.00 ", "EUR", 100n],
    ["12.34000", "EUR", 1234n],
    ["1500", "JPY", 1500n],
    ["1500.000", "JPY", 1500n],
    ["1.234", "KWD", 1234n],
    ["1.2", "KWD", 1200n],
    ["-0.00", "EUR", 0n],
    ["0000000000000000000000012.00", "EUR", 1200n],
    ["9999999999999999.99", "EUR", 999999999999999999n],
  ])("reads %s of %s", (text, currency, minor) => {
    expect(readDecimal(text, currency)).toEqual({ minor });
  });

  it.each([
    ["1.234,56", GERMAN, 123456n],
    ["1234,56", GERMAN, 123456n],
    ["-1 234,5", GERMAN, -123450n],
    ["1\u00a0234,50", GERMAN, 123450n],
    ["1.234", GERMAN, 123400n],
    ["1,234.56", ENGLISH, 123456n],
    ["1'234'567.05", ENGLISH, 123456705n],
  ])("reads %s in a declared notation", (text, notation, minor) => {
    expect(readDecimal(text, "EUR", notation)).toEqual({ minor });
  });

  it.each([
    ["", "EUR", '"" is not a decimal number.'],
    [".", "EUR", '"." is not a decimal number.'],
    ["-", "EUR", '"-" is not a decimal number.'],
    ["1,50", "EUR", '"1,50" is not a decimal number.'],
    ["1e3", "EUR", '"1e3" is not a decimal number.'],
    ["NaN", "EUR", '"NaN" is not a decimal number.'],
    ["1 000", "EUR", '"1 000" is not a decimal number.'],
    ["12.345", "EUR", "12.345 has more decimals than EUR has (2)."],
    ["12.34001", "EUR", "12.34001 has more decimals than EUR has (2)."],
    ["1.5", "JPY", "1.5 has more decimals than JPY has (0)."],
    ["1", "XXX", '"XXX" is no ISO 4217 currency.'],
    ["10000000000000000.00", "EUR", "The amount has more than 18 digits."],
  ])("refuses %j of %s", (text, currency, reason) => {
    expect(readDecimal(text, currency)).toEqual({ reason });
  });

  it.each(["1.23.456", "1.234.56", "12.3456,00", "1.234'567,00", "1,23,456"])("refuses the groups of %s", (text) => {
    expect(readDecimal(text, "EUR", GERMAN)).toHaveProperty("reason");
  });

  it("reads every amount as the product writes it", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 17n), max: 10n ** 17n }),
        fc.constantFrom("EUR", "JPY", "HUF", "IDR"),
        (minor, currency) => {
          expect(readDecimal(formatAmount(minor, currency), currency)).toEqual({ minor });
        },
      ),
    );
  });

  it("answers any text with an amount or a sentence, and does not hang", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("0", "1", "9", ".", ",", "'", "-", " "), maxLength: 400 }),
        (text) => {
          for (const notation of [GERMAN, ENGLISH]) {
            const reading = readDecimal(text, "EUR", notation);
            expect("minor" in reading ? typeof reading.minor : reading.reason).toMatch(/^bigint$|\.$/);
          }
        },
      ),
    );
  });
});

describe("readMinorUnits", () => {
  it.each([
    ["1250", 1250n],
    ["-7", -7n],
    ["000", 0n],
  ])("reads %s", (text, minor) => {
    expect(readMinorUnits(text)).toEqual({ minor });
  });

  it.each(["", "1.0", "1,250", "0x10"])("refuses %j", (text) => {
    expect(readMinorUnits(text)).toHaveProperty("reason");
  });
});

describe("currencyCode", () => {
  it("reads the code in any case, and no other word", () => {
    expect([currencyCode("usd"), currencyCode(" EUR "), currencyCode("EURO"), currencyCode("")]).toEqual([
      "USD",
      "EUR",
      undefined,
      undefined,
    ]);
  });
});
