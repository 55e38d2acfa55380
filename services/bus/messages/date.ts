/**
 * A date or a moment in a request: of the years 1900 to 2199, as in statements. PostgreSQL has no year 0, and the day after the
 * last one of ISO 8601 has a year of five digits.
 */
import { z } from "zod";

/** Other texts than dates are refused for their format. */
const isInRange = (text: string): boolean => !/^\d{4}-/.test(text) || /^(?:19|2[01])/.test(text);
const RANGE = {
  error: "Must be of the years 1900 to 2199.",
  params: { code: "wrong_format" },
} as const;

export const dateSchema = z.iso.date().refine(isInRange, RANGE);
export const momentSchema = z.iso.datetime({ offset: true }).refine(isInRange, RANGE);
