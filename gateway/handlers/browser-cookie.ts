/**
 * The cookie by which the registry knows a browser again at a log-in: one token for each person who logged in there, the
 * newest first. It is no credential. It protects these people from guesses by others (docs/operations.md).
 */
import { BOUNDS } from "../../services/bus/bounds.ts";
import { cookieValue, setCookie } from "./session-cookie.ts";

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
