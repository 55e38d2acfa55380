/** Text that a device reports is evidence: it is kept as far as it can be kept, and never a reason to lose the outcome. */
import { LIMITS } from "../limits.ts";

/**
 * The text as it is stored: what no database can store (the character NUL, half of a surrogate pair) becomes U+FFFD, and
 * what is longer than the bound is cut there, never within a character.
 */
export function evidenceText(text: string): string {
  const whole = text.replaceAll("\0", "\uFFFD").toWellFormed();
  if (whole.length <= LIMITS.reportTextCharacters) return whole;
  const cut = whole.slice(0, LIMITS.reportTextCharacters);
  return cut.isWellFormed() ? cut : cut.slice(0, -1);
}
