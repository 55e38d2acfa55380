/**
 * What makes a line of a statement the same line in another file. A line with a reference of the provider is identified
 * by it; any other by its content. Lines of one file with the same identity get an ordinal each, so that two genuine sales
 * of the same amount are two lines. The statement account is not part of it: a line is unique within
 * its account.
 */
import { hash } from "node:crypto";
import type { ReferenceScope, StatementLine } from "./formats/format.ts";

/** Grows with every change of these rules. A line keeps the version it was stored with, so that history is not imported again. */
export const IDENTITY_VERSION = 1;

const YEAR_CHARACTERS = 4;

/**
 * 32 bytes. The amount is not part of it where a reference is unique within a year: a corrected statement repeats the
 * reference with another amount, and that is the same line with other evidence.
 */
export function lineIdentity(line: StatementLine, scope: ReferenceScope): Buffer {
  const { providerReference, providerType, kind, currency, account } = line;
  const type = [kind, providerType, currency, account];
  const fields =
    providerReference === ""
      ? ["content", ...type, ...contentOf(line)]
      : ["reference", ...type, providerReference, ...scopeOf(line, scope)];
  return hash("sha256", JSON.stringify([IDENTITY_VERSION, ...fields]), "buffer");
}

/**
 * A bank that restarts its numbers each day may also give one number to several entries of a day. Where a provider gives an id
 * only once, the payment and the day are left out: the person who exports the file chooses its columns and its time zone.
 */
function scopeOf({ bookedOn, amountMinor, paymentReference }: StatementLine, scope: ReferenceScope): readonly string[] {
  if (scope === "ever") return [];
  if (scope === "day") return [paymentReference, bookedOn, amountMinor.toString()];
  return [paymentReference, bookedOn.slice(0, YEAR_CHARACTERS)];
}

/** Without the position and the details: an overlapping file has other positions, and a later export more columns. */
function contentOf(line: StatementLine): readonly string[] {
  const { bookedOn, valueOn = "", occurredAt = "", amountMinor, feeMinor, netMinor } = line;
  const { paymentReference, merchantReference, payoutReference, terminal, text } = line;
  const amounts = [amountMinor, feeMinor, netMinor].map((amount) => amount?.toString() ?? "");
  const days = [bookedOn, valueOn, occurredAt];
  return [...days, ...amounts, paymentReference, merchantReference, payoutReference, terminal, text];
}
