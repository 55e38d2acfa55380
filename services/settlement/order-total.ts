/** The value of an order's lines, and what makes lines unacceptable. Pure. */
import { amountFitsWire } from "../../machines/currency.ts";
import type { FieldError } from "../bus/field-errors.ts";
import type { Order } from "../bus/messages/orders.ts";
import { RefusedError } from "../bus/refusals.ts";

export type OrderLine = Order["lines"][number];

/** The largest amount that the contract's pattern can carry, for a person ("Limits" 3). */
const AMOUNT_LIMIT_SENTENCE = "an amount has at most ten integer digits and two fraction digits";

/** Σ quantity × unit amount, in minor units. Throws `invalid_request` with a pointer to each amount that is too large. */
export function orderTotal(lines: readonly OrderLine[], currency: string): bigint {
  const errors = lines.flatMap(({ unitAmountMinor }, index) =>
    amountFitsWire(BigInt(unitAmountMinor), currency)
      ? []
      : [tooLarge(`/lines/${index}/unit_amount`, AMOUNT_LIMIT_SENTENCE)],
  );
  const totalMinor = lines.reduce((sum, line) => sum + BigInt(line.quantity) * BigInt(line.unitAmountMinor), 0n);
  if (errors.length === 0 && !amountFitsWire(totalMinor, currency))
    errors.push(tooLarge("/lines", `the total is too large: ${AMOUNT_LIMIT_SENTENCE}`));
  if (errors.length > 0) throw new RefusedError({ code: "invalid_request", errors });
  return totalMinor;
}

const tooLarge = (pointer: string, detail: string): FieldError => ({ pointer, code: "amount_too_large", detail });
