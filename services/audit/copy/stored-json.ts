/** What a device or a keyboard sent may hold characters that PostgreSQL cannot; none of them may stop the copy. */

/** JSON for a jsonb column: a NUL, or half of a surrogate pair, becomes the replacement character. */
export function jsonbText(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => (typeof part === "string" ? plainText(part) : part));
}

/** A text for a text column, with the same replacement. */
export function plainText(text: string): string {
  return text.replaceAll("\0", "\uFFFD").toWellFormed();
}

/**
 * A key for a text column: JSON's escapes keep every two different keys different, whatever they hold. Used both to
 * write and to look up.
 */
export function keyText(key: string): string {
  return JSON.stringify(key).slice(1, -1);
}
