/** Retry-After (RFC 9110, 10.2.3). */
import { SIGNER_LIMITS } from "../limits.ts";

/** How long the target wants to be left alone, at most `longestRetryAfterMs`; null where that cannot be understood. */
export function retryAfterMs(header: string | readonly string[] | undefined, nowMs: number): number | null {
  const text = (typeof header === "object" ? header[0] : header)?.trim();
  if (text === undefined) return null;
  const waitMs = /^\d{1,10}$/.test(text) ? Number(text) * 1_000 : dateOf(text) - nowMs;
  if (Number.isNaN(waitMs)) return null;
  return Math.min(Math.max(waitMs, 0), SIGNER_LIMITS.longestRetryAfterMs);
}

/** Only the form that is to be sent (IMF-fixdate); `Date.parse` alone takes much that is no date. */
function dateOf(text: string): number {
  return /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text) ? Date.parse(text) : Number.NaN;
}
