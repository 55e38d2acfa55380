/** The beginning of an answer as text for a record. */
import { TARGET_LIMITS } from "../limits.ts";

/** PostgreSQL's text holds no NUL; the others would move a terminal's cursor or turn the text around it. */
const UNSEEN = /(?![\n\t])[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** At most `excerptBytes` of UTF-8; what is no UTF-8 becomes U+FFFD, what cannot be seen a space. */
export function answerText(body: Uint8Array): string {
  if (body.length === 0) return "";
  const text = new TextDecoder().decode(body.subarray(0, TARGET_LIMITS.excerptBytes)).replace(UNSEEN, " ");
  // U+FFFD takes more room than the byte that it stands for, so the text is measured again.
  const room = new Uint8Array(TARGET_LIMITS.excerptBytes);
  const { read } = new TextEncoder().encodeInto(text, room);
  return text.slice(0, read);
}
