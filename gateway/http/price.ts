/** A price that a person enters, and its conversion to minor units. */
import { z } from "zod";
import { currencyExponent } from "../../machines/currencies.ts";
import { amountFitsWire, parseAmount } from "../../machines/currency.ts";
import type { FieldError } from "../../services/bus/field-errors.ts";

/** A price without a sign. It has at most two decimals, and at most those of its currency. */
export const priceSchema = z
  .string()
  .regex(/^\d{1,10}(?:\.\d{1,2})?$/, "Must be an amount such as 12.50.")
  .meta({
    format: "decimal",
    description: "A price without a sign, with two decimals at most, such as 12.50.",
    examples: ["12.50"],
  });

/** The price in minor units, or the error when it has too many decimals for the currency, because the service never rounds. */
export function priceMinor(price: string, currency: string, pointer: string): string | FieldError {
  const minor = parseAmount(price, currency);
  if (minor !== undefined && amountFitsWire(minor, currency)) return String(minor);
  return { pointer, code: "not_of_currency", detail: `${currency} has ${currencyExponent(currency) ?? 0} decimals.` };
}
