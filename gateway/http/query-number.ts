/** Numbers in a query. */
import { z } from "zod";

const DIGITS = /^\d+$/;

/** Says what this parameter takes: of an id there is no bound that anybody needs to know. */
function sentence(least: number, most: number | undefined): string {
  const bounds = most === undefined ? `, at least ${least}` : `, ${least} to ${most}`;
  return `Must be a whole number in decimal digits${bounds}.`;
}

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
  const { least, most } = bounds;
  const error = sentence(least, most);
  const upTo = most ?? Number.MAX_SAFE_INTEGER;
  return z.preprocess(read, z.int({ error }).min(least, { error }).max(upTo, { error }));
}

/** An id in a query. */
export const queryId = () => queryNumber({ least: 1 });
