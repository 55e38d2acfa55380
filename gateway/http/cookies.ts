/** The cookies of pages: one carries the session's token, the other identifies the browser to the log-in. */
import { BOUNDS } from "../../services/bus/bounds.ts";

/** Carries the token that programs send as a bearer (design §5). */
const SESSION_COOKIE = "dp_session";
/**
 * Carries one token for each person who has logged in with this browser, the newest first. It grants no access: it
 * protects these people from the throttle that guesses of others fill (docs/operations.md).
 */
const BROWSER_COOKIE = "dp_browser";
const BROWSER_TOKENS = new RegExp(`^[\\w-]{22}(\\.[\\w-]{22}){0,${BOUNDS.browserTokens - 1}}$`);

interface CookieFacts {
  readonly path: string;
  readonly maxAgeMs: number;
  /** Whether the client's connection is encrypted. */
  readonly secure: boolean;
}

/** The APIs of people. Each has a session of its own in a browser, because each is for another role. */
export type PeoplesApi = "cashier" | "backoffice" | "reconciliation";
type SessionCookieFacts = Pick<CookieFacts, "maxAgeMs" | "secure"> & { readonly api: PeoplesApi };

/** The `Set-Cookie` value after a log-in: scripts cannot read it, no other site can send it, and its API alone gets it. */
export function sessionCookie(token: string, { api, ...facts }: SessionCookieFacts): string {
  return setCookie(SESSION_COOKIE, token, { ...facts, path: `/api/${api}/` });
}

/** The `Set-Cookie` value that ends the session in the browser. */
export function endedSessionCookie(facts: Omit<SessionCookieFacts, "maxAgeMs">): string {
  return sessionCookie("", { ...facts, maxAgeMs: 0 });
}

/** The session's token in a `Cookie` header; the empty string without one, undefined when there are several. */
export function tokenFromCookie(header: string): string | undefined {
  return cookieValue(header, SESSION_COOKIE);
}

/** The browser's tokens in a `Cookie` header; none when there are several such cookies, or the gateway has not set it. */
export function browserTokens(header: string): readonly string[] {
  const value = cookieValue(header, BROWSER_COOKIE) ?? "";
  return BROWSER_TOKENS.test(value) ? value.split(".") : [];
}

/** The `Set-Cookie` value after a log-in with `token`. Only log-ins need it, so `path` is theirs. */
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
 * The value of a cookie; the empty string without one, undefined when there are several. A page of a neighbouring
 * subdomain can add a cookie of this name and choose its place in the header. No value is then certain to be the
 * person's: with another's, they would act in another person's name without seeing it.
 */
function cookieValue(header: string, name: string): string | undefined {
  const values = new Set<string>();
  for (const pair of header.split(";")) {
    const cut = pair.indexOf("=");
    if (cut > 0 && pair.slice(0, cut).trim() === name) values.add(pair.slice(cut + 1).trim());
  }
  // A session that was ended in the browser leaves an empty value.
  values.delete("");
  if (values.size > 1) return undefined;
  const [value = ""] = values;
  return value;
}
