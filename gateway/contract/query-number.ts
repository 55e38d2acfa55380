/** Numbers in a query. */
import { z } from "zod";

const DIGITS = /^\d+$/;
const SENTENCE = "Must be a whole number in decimal digits, up to 9007199254740991.";

function read(value: unknown): unknown {
  if (typeof value !== "string" || !DIGITS.test(value)) return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/**
 * A whole number in plain decimal digits. What else JavaScript would read as a number (`1e2`, ` 5`, `0x10`, the empty
 * text) is refused: a cursor that a client has built wrongly must not read as another one.
 */
export function queryNumber(bounds: { readonly least: number; readonly most?: number }) {
  const { least, most = Number.MAX_SAFE_INTEGER } = bounds;
  return z.preprocess(read, z.int({ error: SENTENCE }).min(least).max(most));
}

/** An id in a query. */
export const queryId = () => queryNumber({ least: 1 });
