/** What a person or a device sent may hold characters that PostgreSQL cannot; none of them may stop the copy. */

/** A name for a text column: a NUL, or half of a surrogate pair, becomes the replacement character. */
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
