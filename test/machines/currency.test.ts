/** Money: exponents, the contract's pattern, and writing and reading as inverses. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { currencyExponent } from "../../machines/currencies.ts";
import {
  AMOUNT_PATTERN,
  amountFitsWire,
  formatAmount,
  formatExactAmount,
  parseAmount,
  parseSignedAmount,
} from "../../machines/currency.ts";

const CURRENCIES = ["EUR", "USD", "JPY", "KRW", "KWD", "TND"] as const;

/** How many decimals Intl would show. */
const digitsByIntl = (currency: string): number | undefined =>
  new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits;

describe("exponents", () => {
  it.each([
    ["EUR", 2],
    ["JPY", 0],
    ["KWD", 3],
    ["ISK", 0],
    ["HUF", 2],
    ["MGA", 2],
    ["XCG", 2],
    ["XXX", undefined],
    ["eur", undefined],
    ["", undefined],
    ["toString", undefined],
    ["constructor", undefined],
  ])("%s has %s decimals", (currency, exponent) => {
    expect(currencyExponent(currency)).toBe(exponent);
  });

  it("currencies that ISO 4217 lists with no or three decimals: the same number", () => {
    const listed = {
      0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
      3: "BHD IQD JOD KWD LYD OMR TND",
    };
    for (const [exponent, currencies] of Object.entries(listed))
      for (const currency of currencies.split(" ")) expect(currencyExponent(currency), currency).toBe(Number(exponent));
  });

  it("all known currencies: as Intl has them, or Intl has no decimals, because shops round to whole units", () => {
    const known = Intl.supportedValuesOf("currency").filter((currency) => currencyExponent(currency) !== undefined);
    const others = known.filter((currency) => digitsByIntl(currency) !== currencyExponent(currency));
    expect(known.length).toBeGreaterThan(150);
    expect(others.map(digitsByIntl).every((digits) => digits === 0)).toBe(true);
  });
});

describe("an amount on the wire", () => {
  it.each([
    ["1250", "EUR", "12.50"],
    ["5", "EUR", "0.05"],
    ["0", "EUR", "0.00"],
    ["-5", "EUR", "-0.05"],
    ["-1250", "JPY", "-1250"],
    ["1250", "JPY", "1250"],
    ["1250", "KWD", "1.25"],
    ["10", "KWD", "0.01"],
    ["999999999999", "EUR", "9999999999.99"],
  ])("%s minor units of %s are %s", (minor, currency, text) => {
    expect(formatAmount(minor, currency)).toBe(text);
    expect(formatAmount(BigInt(minor), currency)).toBe(text);
  });

  it.each([
    [999_999_999_999n, "EUR", true],
    [1_000_000_000_000n, "EUR", false],
    [9_999_999_999n, "JPY", true],
    [10_000_000_000n, "JPY", false],
    [9_999_999_999_990n, "KWD", true],
    [1_255n, "KWD", false],
    [-1n, "EUR", false],
    [1n, "XXX", false],
  ])("%s of %s fits: %s", (minor, currency, fits) => {
    expect(amountFitsWire(minor, currency)).toBe(fits);
  });

  it("an amount that fits: its text matches the contract's pattern, and reading the text gives the amount", () => {
    fc.assert(
      fc.property(fc.constantFrom(...CURRENCIES), fc.bigInt({ min: 0n, max: 10n ** 14n }), (currency, minor) => {
        fc.pre(amountFitsWire(minor, currency));
        const text = formatAmount(minor, currency);
        expect(text).toMatch(AMOUNT_PATTERN);
        expect(parseAmount(text, currency)).toBe(minor);
      }),
    );
  });

  it("any amount: fits exactly when its text matches the pattern and reading it gives the same amount", () => {
    fc.assert(
      fc.property(fc.constantFrom(...CURRENCIES), fc.bigInt({ min: 0n, max: 10n ** 14n }), (currency, minor) => {
        const text = formatAmount(minor, currency);
        const isWritten = AMOUNT_PATTERN.test(text) && parseAmount(text, currency) === minor;
        expect(amountFitsWire(minor, currency)).toBe(isWritten);
      }),
    );
  });
});

describe("a typed amount", () => {
  it.each([
    ["12.50", "EUR", 1_250n],
    ["12.5", "EUR", 1_250n],
    ["12", "EUR", 1_200n],
    ["0", "EUR", 0n],
    ["12", "JPY", 12n],
    ["1.255", "KWD", 1_255n],
    ["12.505", "EUR", undefined],
    ["12.5", "JPY", undefined],
    ["", "EUR", undefined],
    [".5", "EUR", undefined],
    ["5.", "EUR", undefined],
    ["-5", "EUR", undefined],
    ["+5", "EUR", undefined],
    ["1e3", "EUR", undefined],
    [" 5", "EUR", undefined],
    ["5\n", "EUR", undefined],
    ["٥", "EUR", undefined],
    ["12345678901", "EUR", undefined],
    ["5", "XXX", undefined],
  ])("%j of %s is %s", (text, currency, minor) => {
    expect(parseAmount(text, currency)).toBe(minor);
  });
});

describe("formatExactAmount and parseSignedAmount", () => {
  it.each([
    [-5n, "EUR", "-0.05"],
    [1_234n, "KWD", "1.234"],
    [-999_999_999_999n, "EUR", "-9999999999.99"],
    [7n, "JPY", "7"],
    [0n, "EUR", "0.00"],
  ])("%s %s is %s, and back", (minor, currency, text) => {
    expect(formatExactAmount(minor, currency)).toBe(text);
    expect(parseSignedAmount(text, currency)).toBe(minor);
  });

  it.each(["1.001", "--1.00", "", "1,00", "1e2", "123456789012345.00"])("%s is no amount in EUR", (text) => {
    expect(parseSignedAmount(text, "EUR")).toBeUndefined();
  });
});
