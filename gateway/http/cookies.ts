/** The cookies of pages: one has the session's token, the other identifies the browser at a log-in. */
import { BOUNDS } from "../../services/bus/bounds.ts";

/** Has the session's token, which programs send as a bearer token. */
const SESSION_COOKIE = "dp_session";
/**
 * Has one token for each person who has logged in with this browser, newest first. It grants no access. With it, failed log-ins
 * by others do not throttle these people (docs/operations.md).
 */
const BROWSER_COOKIE = "dp_browser";
const BROWSER_TOKENS = new RegExp(`^[\\w-]{22}(\\.[\\w-]{22}){0,${BOUNDS.browserTokens - 1}}$`);

interface CookieFacts {
  readonly path: string;
  readonly maxAgeMs: number;
  /** Whether the client's connection is encrypted. */
  readonly secure: boolean;
}

/** The APIs of people. Each has a separate session in a browser, because each is for another role. */
export type PeoplesApi = "cashier" | "backoffice" | "reconciliation";
type SessionCookieFacts = Pick<CookieFacts, "maxAgeMs" | "secure"> & { readonly api: PeoplesApi };

/** The `Set-Cookie` value after a log-in. Scripts cannot read the cookie, other sites cannot send it, and only its API gets it. */
export function sessionCookie(token: string, { api, ...facts }: SessionCookieFacts): string {
  return setCookie(SESSION_COOKIE, token, { ...facts, path: `/api/${api}/` });
}

/** The `Set-Cookie` value that ends the session in the browser. */
export function endedSessionCookie(facts: Omit<SessionCookieFacts, "maxAgeMs">): string {
  return sessionCookie("", { ...facts, maxAgeMs: 0 });
}

/** The session's token in a `Cookie` header. Empty without one, undefined when there are several. */
export function tokenFromCookie(header: string): string | undefined {
  return cookieValue(header, SESSION_COOKIE);
}

/** The browser's tokens in a `Cookie` header. None when there are several such cookies, or when the value is not valid. */
export function browserTokens(header: string): readonly string[] {
  const value = cookieValue(header, BROWSER_COOKIE) ?? "";
  return BROWSER_TOKENS.test(value) ? value.split(".") : [];
}

/** The `Set-Cookie` value after a log-in with `token`. `path` is that of log-ins, because only they need the cookie. */
export function browserCookie(
  token: string,
  facts: Pick<CookieFacts, "path" | "secure"> & { readonly earlier: readonly string[] },
): string {
  const tokens = [token, ...facts.earlier.filter((earlier) => earlier !== token)].slice(0, BOUNDS.browserTokens);
  const maxAgeMs = BOUNDS.knownBrowserDays * 24 * 3_600_000;
  return setCookie(BROWSER_COOKIE, tokens.join("."), { ...facts, maxAgeMs });
}

function setCookie(name: string, value: string, { path, maxAgeMs, secure }: CookieFacts): string {
  const maxAgeSeconds = Math.max(0, Math.floor(maxAgeMs / 1_000));
  return `${name}=${value}; Path=${path}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${secure ? "; Secure" : ""}`;
}

/**
 * The value of a cookie. Empty without one, undefined when there are several. A page of another subdomain can add a cookie with
 * this name and choose its place in the header. With several values, none is certain to be the person's. With a wrong value,
 * the person would act in another person's name without noticing it.
 */
function cookieValue(header: string, name: string): string | undefined {
  const values = new Set<string>();
  for (const pair of header.split(";")) {
    const cut = pair.indexOf("=");
    if (cut > 0 && pair.slice(0, cut).trim() === name) values.add(pair.slice(cut + 1).trim());
  }
  // The end of a session leaves an empty value in the browser.
  values.delete("");
  if (values.size > 1) return undefined;
  const [value = ""] = values;
  return value;
}
