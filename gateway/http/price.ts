/** A price that a person types, and what it is in minor units. */
import { z } from "zod";
import { currencyExponent } from "../../machines/currencies.ts";
import { amountFitsWire, parseAmount } from "../../machines/currency.ts";
import type { FieldError } from "../../services/bus/field-errors.ts";

/** Without a sign, with at most two decimals and no more than the currency has. */
export const priceSchema = z
  .string()
  .regex(/^\d{1,10}(?:\.\d{1,2})?$/, "Must be an amount such as 12.50.")
  .meta({
    format: "decimal",
    description: "A price without a sign, with two decimals at most, such as 12.50.",
    examples: ["12.50"],
  });

/** Minor units, or what is wrong with a price that this currency cannot have: the service never rounds. */
export function priceMinor(price: string, currency: string, pointer: string): string | FieldError {
  const minor = parseAmount(price, currency);
  if (minor !== undefined && amountFitsWire(minor, currency)) return String(minor);
  return { pointer, code: "not_of_currency", detail: `${currency} has ${currencyExponent(currency) ?? 0} decimals.` };
}
