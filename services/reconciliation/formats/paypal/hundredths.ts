/** Amounts of PayPal's typed reports: they count hundredths of every currency, so that 10000 is 100 dollars and 100 yen. */
import { type AmountReading, readDecimal } from "../amounts.ts";

/** Whole numbers without a sign; the direction is in another field. */
export function readHundredths(text: string, currency: string): AmountReading {
  if (!/^\d+$/.test(text)) return { reason: `${JSON.stringify(text.slice(0, 40))} is no whole number of hundredths.` };
  const digits = text.padStart(3, "0");
  return readDecimal(`${digits.slice(0, -2)}.${digits.slice(-2)}`, currency);
}
