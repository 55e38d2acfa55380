/** The session cookie of pages; programs send the same token as a bearer (design §5). */

export const SESSION_COOKIE = "dp_session";

/** The `Set-Cookie` value after a log-in: unreadable by scripts, never sent from another site. */
export function sessionCookie(token: string, facts: { maxAgeMs: number; secure: boolean }): string {
  const maxAgeSeconds = Math.max(0, Math.floor(facts.maxAgeMs / 1_000));
  return `${SESSION_COOKIE}=${token}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${facts.secure ? "; Secure" : ""}`;
}

/** The `Set-Cookie` value that ends it in the browser. */
export function endedSessionCookie(secure: boolean): string {
  return sessionCookie("", { maxAgeMs: 0, secure });
}

/** The token in a `Cookie` header; the empty string without one. */
export function tokenFromCookie(header: string): string {
  for (const pair of header.split(";")) {
    const cut = pair.indexOf("=");
    if (cut > 0 && pair.slice(0, cut).trim() === SESSION_COOKIE) return pair.slice(cut + 1).trim();
  }
  return "";
}
