/** Amounts on the pages have the decimals of the service. */
import { expect, test } from "vitest";
import { amountOf, currencyDigits, decimalOfMinor } from "../../../gateway/web/shared/amounts.ts";

test.each([
  ["1250", "HUF", "12.50"],
  ["1250", "IQD", "1.250"],
  ["1250", "JPY", "1250"],
  ["-5", "EUR", "-0.05"],
  ["12.50", "EUR", undefined],
])("%s minor units of %s: a page shows %s", (minor, currency, expected) => {
  expect(decimalOfMinor(minor, currency)).toBe(expected);
});

test("a typed amount: it gets the decimals of its currency, and too many are no amount", () => {
  expect(amountOf("12,5", currencyDigits("HUF"))).toBe("12.50");
  expect(amountOf("12.5", currencyDigits("JPY"))).toBeUndefined();
});
