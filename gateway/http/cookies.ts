/** The cookies that browsers keep: the session of a page (programs send the same token as a bearer, design §5), and known browsers. */
import { BOUNDS } from "../../services/bus/bounds.ts";

export const SESSION_COOKIE = "dp_session";

/** The `Set-Cookie` value after a log-in: unreadable by scripts, never sent from another site. */
export function sessionCookie(token: string, facts: { maxAgeMs: number; secure: boolean }): string {
  return setCookie(SESSION_COOKIE, token, { ...facts, path: "/" });
}

export function setCookie(
  name: string,
  value: string,
  facts: { readonly path: string; readonly maxAgeMs: number; readonly secure: boolean },
): string {
  const maxAgeSeconds = Math.max(0, Math.floor(facts.maxAgeMs / 1_000));
  return `${name}=${value}; Path=${facts.path}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${facts.secure ? "; Secure" : ""}`;
}

/** The `Set-Cookie` value that ends it in the browser. */
export function endedSessionCookie(secure: boolean): string {
  return sessionCookie("", { maxAgeMs: 0, secure });
}

/** The token in a `Cookie` header; the empty string without one, undefined when there are several. */
export function tokenFromCookie(header: string): string | undefined {
  return cookieValue(header, SESSION_COOKIE);
}

/**
 * The value of a cookie; the empty string without one, undefined when there are several. A neighbouring
 * subdomain can add a cookie of this name and choose its place in the header, so that neither the first nor one that
 * happens to be known is the person's own for certain: they might act in somebody else's name without seeing it.
 */
export function cookieValue(header: string, name: string): string | undefined {
  const values = new Set<string>();
  for (const pair of header.split(";")) {
    const cut = pair.indexOf("=");
    if (cut > 0 && pair.slice(0, cut).trim() === name) values.add(pair.slice(cut + 1).trim());
  }
  // What is left of a session that was ended in the browser.
  values.delete("");
  if (values.size > 1) return undefined;
  const [value = ""] = values;
  return value;
}

/**
 * The cookie by which the registry knows a browser again at a log-in: one token for each person who logged in there, the
 * newest first. It is no credential. It protects these people from guesses by others (docs/operations.md).
 */
const BROWSER_COOKIE = "dp_browser";
const TOKENS = new RegExp(`^[\\w-]{22}(\\.[\\w-]{22}){0,${BOUNDS.browserTokens - 1}}$`);

/** The tokens in a `Cookie` header; none when there are several such cookies, or it is none that the gateway has set. */
export function browserTokens(header: string): readonly string[] {
  const value = cookieValue(header, BROWSER_COOKIE) ?? "";
  return TOKENS.test(value) ? value.split(".") : [];
}

/** The `Set-Cookie` value after a log-in with `token`. The browser sends it with log-ins alone, so `path` is theirs. */
export function browserCookie(
  token: string,
  facts: { readonly earlier: readonly string[]; readonly path: string; readonly secure: boolean },
): string {
  const tokens = [token, ...facts.earlier.filter((earlier) => earlier !== token)].slice(0, BOUNDS.browserTokens);
  const maxAgeMs = BOUNDS.knownBrowserDays * 24 * 3_600_000;
  return setCookie(BROWSER_COOKIE, tokens.join("."), { ...facts, maxAgeMs });
}
