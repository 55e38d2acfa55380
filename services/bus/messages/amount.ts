/** Amounts in minor units: decimal digits in a text, which carries more digits than a JSON number. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";

export const amountMinorSchema = z.string().regex(new RegExp(`^\\d{1,${BOUNDS.amountMinorDigits}}$`));
/**
 * An amount in a statement, with up to 18 digits, or the sum of a million lines: refunds and fees are negative, and an
 * amount may be larger than that of any order.
 */
export const signedMinorSchema = z.string().regex(/^-?\d{1,24}$/);
