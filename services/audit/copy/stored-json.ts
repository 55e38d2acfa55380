/** What a person or a device sent may hold characters that PostgreSQL cannot; none of them may stop the copy. */

/** A name for a text column: a NUL, or half of a surrogate pair, becomes the replacement character. */
export function plainText(text: string): string {
  return text.replaceAll("\0", "\uFFFD").toWellFormed();
}
