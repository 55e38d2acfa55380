/**
 * The one form of JSON that is hashed and signed: no white space; the members of an object in the order of their names' bytes;
 * numbers are whole; text is escaped as `JSON.stringify` does it. PostgreSQL writes lines and issues in the same form
 * (`closing_line`, `closing_issue`), and clients/verify-closing.mjs reads it.
 */
type Canonical = string | number | null | readonly Canonical[] | CanonicalObject;
export interface CanonicalObject {
  readonly [name: string]: Canonical;
}

/** Throws for a number that is not whole, because such numbers have several forms. */
export function canonicalJson(value: Canonical): string {
  if (value === null || typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value)) throw new Error("Only whole numbers have one form.");
    return JSON.stringify(value);
  }
  if (isList(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const members = Object.entries(value).toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(",")}}`;
}

const isList = (value: Canonical): value is readonly Canonical[] => Array.isArray(value);
