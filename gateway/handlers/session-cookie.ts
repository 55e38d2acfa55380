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

/**
 * The token in a `Cookie` header; the empty string without one, undefined when there are several. A neighbouring
 * subdomain can add a cookie of this name and choose its place in the header, so that neither the first nor one that
 * happens to be known is the person's own for certain: they might act in somebody else's name without seeing it.
 */
export function tokenFromCookie(header: string): string | undefined {
  const tokens = new Set<string>();
  for (const pair of header.split(";")) {
    const cut = pair.indexOf("=");
    if (cut > 0 && pair.slice(0, cut).trim() === SESSION_COOKIE) tokens.add(pair.slice(cut + 1).trim());
  }
  // What is left of a session that was ended in the browser.
  tokens.delete("");
  if (tokens.size > 1) return undefined;
  const [token = ""] = tokens;
  return token;
}
