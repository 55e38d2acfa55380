/**
 * Stores the text of devices unchanged in PostgreSQL, whose text and jsonb cannot hold NUL or half of a surrogate pair.
 * Such a character is stored as the mark U+FDD0, which Unicode reserves for use inside programs, and four hex digits. A
 * mark in the text is stored in the same way. All other text is stored unchanged.
 */
const MARK = "\uFDD0";
const NOT_STORABLE = new RegExp(`[\\0${MARK}\\p{Cs}]`, "gu");
const STORED = new RegExp(`${MARK}([0-9a-f]{4})`, "g");

/** The text for a text column or a value inside jsonb. `readStoredText` returns the original. */
export function storedText(text: string): string {
  return text.replaceAll(NOT_STORABLE, (unit) => MARK + unit.charCodeAt(0).toString(16).padStart(4, "0"));
}

export function readStoredText(stored: string): string {
  return stored.replaceAll(STORED, (_mark, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}

/** Readable text for a text column, where the original is stored elsewhere: each such character becomes U+FFFD. */
export function storableText(text: string): string {
  return text.replaceAll("\0", "\uFFFD").toWellFormed();
}

/** JSON for a jsonb column, with all its text as `storedText`. */
export function storedJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => (typeof part === "string" ? storedText(part) : part));
}

/** A value from a jsonb column, with its original text. */
export function readStoredJson<T>(value: T): T {
  return readPart(value) as T;
}

function readPart(value: unknown): unknown {
  if (typeof value === "string") return readStoredText(value);
  if (Array.isArray(value)) return value.map(readPart);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, readPart(part)]));
}

/** A key for a text column. With JSON's escapes, different keys stay different. */
export function keyText(key: string): string {
  return JSON.stringify(key).slice(1, -1);
}
