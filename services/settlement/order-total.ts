/** The value of an order's lines, and what makes lines unacceptable. Pure. */
import { AMOUNT_PATTERN, amountFitsWire, formatAmount } from "../../machines/currency.ts";
import type { FieldError } from "../bus/field-errors.ts";
import type { Order } from "../bus/messages/orders.ts";

export type OrderLine = Order["lines"][number];

/** The largest amount that the contract's pattern can carry, for a person ("Limits" 3). */
const AMOUNT_LIMIT_SENTENCE = "an amount has at most ten integer digits and two fraction digits";

/** Σ quantity × unit amount, in minor units, or the fields that make the lines unacceptable. */
export function orderTotal(
  lines: readonly OrderLine[],
  currency: string,
): { readonly totalMinor: bigint } | { readonly errors: readonly FieldError[] } {
  const errors = lines.flatMap((line, index) => lineErrors(line, index, currency));
  if (errors.length > 0) return { errors };
  const totalMinor = lines.reduce((sum, line) => sum + BigInt(line.quantity) * BigInt(line.unitAmountMinor), 0n);
  if (!fitsContract(totalMinor, currency)) {
    return {
      errors: [
        { pointer: "/lines", code: "amount_too_large", detail: `the total is too large: ${AMOUNT_LIMIT_SENTENCE}` },
      ],
    };
  }
  return { totalMinor };
}

function lineErrors(line: OrderLine, index: number, currency: string): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (!isStorableText(line.name)) {
    errors.push({
      pointer: `/lines/${index}/name`,
      code: "not_text",
      detail: "the name holds characters that are not text",
    });
  }
  if (!fitsContract(BigInt(line.unitAmountMinor), currency)) {
    errors.push({ pointer: `/lines/${index}/unit_amount`, code: "amount_too_large", detail: AMOUNT_LIMIT_SENTENCE });
  }
  return errors;
}

/** The table has the currency's decimals; the pattern is the contract's. */
function fitsContract(amountMinor: bigint, currency: string): boolean {
  return amountFitsWire(amountMinor, currency) && AMOUNT_PATTERN.test(formatAmount(amountMinor, currency));
}

/** PostgreSQL's text cannot contain a NUL or half of a surrogate pair. */
export function isStorableText(text: string): boolean {
  return !text.includes("\0") && text.isWellFormed();
}
