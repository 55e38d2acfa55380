/** The pages show and read amounts with the same decimals as the service. */
import { describe, expect, test } from "vitest";
import { priceSchema } from "../../../gateway/http/price.ts";
import { currenciesOf } from "../../../gateway/web/reconcile/issues/amounts.ts";
import { decimalOfMinor, priceOf } from "../../../gateway/web/shared/amounts.ts";
import { moneyIn, typedIn } from "../../../gateway/web/shared/money.ts";

describe("amounts on the pages", () => {
  test.each([
    ["1250", "HUF", "12.50"],
    ["1250", "IQD", "1.250"],
    ["1250", "JPY", "1250"],
    ["-5", "EUR", "-0.05"],
    ["12.50", "EUR", undefined],
  ])("%s minor units of %s: a page shows %s", (minor, currency, expected) => {
    expect(decimalOfMinor(minor, currency)).toBe(expected);
  });

  test.each([
    ["12,5", "HUF", "12.50"],
    ["12.5", "JPY", undefined],
    ["12.505", "EUR", undefined],
    // The API has two decimals of every price.
    ["12", "KWD", "12.00"],
    ["4,500", "KWD", "4.50"],
    ["4.505", "KWD", undefined],
    ["4.5000", "KWD", undefined],
  ])("a typed price of %s %s is %s for the API", (typed, currency, price) => {
    expect(priceOf(typed, currency)).toBe(price);
  });

  test.each(["BHD", "EUR", "JPY"])("a typed price in %s: the API accepts it", (currency) => {
    expect(priceSchema.parse(priceOf("1", currency))).toBe(priceOf("1", currency));
  });

  test("a comparison of two currencies: each side has its currency", () => {
    const amount = { field: "amountMinor", expected: "1250", found: "1300" };
    const currency = { field: "currency", expected: "EUR", found: "JPY" };
    // The issue has the currency of the line, JPY. In it, the expected 12.50 EUR would be shown as 1250 JPY.
    expect(currenciesOf([amount, currency], "JPY")).toEqual({ expected: "EUR", found: "JPY" });
    expect(currenciesOf([amount], "EUR")).toEqual({ expected: "EUR", found: "EUR" });
    expect(currenciesOf([], null)).toEqual({ expected: null, found: null });
  });

  test.each([
    ["de-DE", "9.80", "9,80"],
    ["de-CH", "9.80", "9.80"],
    ["en-GB", "1250.125", "1250.125"],
    ["de-DE", "1250", "1250"],
  ])("%s: a form shows %s as %s", (locale, amount, typed) => {
    expect(typedIn(locale, amount)).toBe(typed);
  });

  test.each([
    ["en-GB", "-1234567890123.45", "EUR", "-€1,234,567,890,123.45"],
    ["en-IN", "1234567.50", "INR", "₹12,34,567.50"],
    ["de-DE", "999.125", "KWD", "999,125 KWD"],
    ["de-DE", "1250", "JPY", "1.250 ¥"],
    // This locale groups the digits of amounts and of numbers differently.
    ["de-AT", "1250.00", "EUR", "€ 1.250,00"],
  ])("%s: %s %s is written as %s", (locale, amount, currency, written) => {
    expect(moneyIn(locale, amount, currency).replaceAll("\u00a0", " ")).toBe(written);
  });
});
