/** Who a person is: bearer for programs, cookie for pages; a cookie only from the service's own pages (design §5). */
import type { Permission } from "../../services/bus/messages/caller.ts";
import type { SessionEntry } from "../../services/bus/messages/sessions.ts";
import { tokenFromCookie } from "../handlers/session-cookie.ts";
import { type SessionReplica, sessionDigest } from "../read-model/replica/session-replica.ts";
import type { RequestFacts } from "./facts.ts";
import { Refusal } from "./handler-context.ts";

export interface SessionCheckDeps {
  readonly sessions: SessionReplica;
  nowMs(): number;
  areSessionsFresh(nowMs: number): boolean;
  /** False while a session may be valid that is not in the replica, because the bus has lost it. */
  areSessionsComplete(): boolean;
}

/** Throws `replica_stale`, `session_missing`, `session_invalid`, `csrf_refused` or `permission_denied`. */
export function checkSession(deps: SessionCheckDeps, facts: RequestFacts, permission: Permission | null): SessionEntry {
  return findSession(deps, facts, permission, refuseForeignOrigin).session;
}

export interface UpgradingSession {
  readonly session: SessionEntry;
  /** By this the session is found again for as long as the socket lives. */
  readonly digest: string;
}

/**
 * The same for a request that becomes a WebSocket: a page of another origin could read what comes over it, which the
 * browser would keep from it for a GET, so the origin counts here too.
 */
export function checkUpgrade(
  deps: SessionCheckDeps,
  facts: RequestFacts,
  permission: Permission | null,
): UpgradingSession {
  return findSession(deps, facts, permission, refuseForeign);
}

function findSession(
  deps: SessionCheckDeps,
  facts: RequestFacts,
  permission: Permission | null,
  checkOrigin: (facts: RequestFacts) => void,
): UpgradingSession {
  const nowMs = deps.nowMs();
  if (!deps.areSessionsFresh(nowMs)) throw new Refusal("replica_stale");
  const bearer = bearerToken(facts.headers.authorization ?? "");
  const token = bearer === "" ? tokenFromCookie(facts.headers.cookie ?? "") : bearer;
  if (token === undefined) throw new Refusal("session_invalid");
  if (token === "") throw new Refusal("session_missing");
  if (bearer === "") checkOrigin(facts);
  const digest = sessionDigest(token);
  const session = deps.sessions.findDigest(digest, nowMs);
  if (session === undefined) throw new Refusal(deps.areSessionsComplete() ? "session_invalid" : "replica_stale");
  if (permission !== null && !session.permissions.includes(permission)) throw new Refusal("permission_denied");
  return { session, digest };
}

/**
 * Cross-site request forgery: a browser sends the cookie whoever wrote the page, but it also says who that was.
 * `Origin` decides where it was sent, else `Sec-Fetch-Site`; a request with neither does not come from a browser's page.
 */
export function refuseForeignOrigin(facts: RequestFacts): void {
  if (facts.method !== "GET" && facts.method !== "HEAD") refuseForeign(facts);
}

function refuseForeign(facts: RequestFacts): void {
  const { origin, host = "" } = facts.headers;
  if (origin !== undefined) {
    if (!isOwnOrigin(origin, { host, secure: facts.secure })) throw new Refusal("csrf_refused");
    return;
  }
  const site = facts.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") throw new Refusal("csrf_refused");
}

/** The token of an `Authorization: Bearer` header; the empty string when there is none. */
export function bearerToken(authorization: string): string {
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "";
}

/**
 * Whether the page came from where the request went: scheme, host and port. A connection that is known to be encrypted
 * (TLS here, or a trusted proxy that says so) has pages of `https` only: one of `http` may have been written by anybody
 * on the way. Of any other connection the scheme is not known, because a proxy that nobody has named may have ended TLS;
 * then the page's own scheme counts.
 */
export function isOwnOrigin(origin: string, own: { readonly host: string; readonly secure: boolean }): boolean {
  const page = URL.parse(origin);
  if (page === null || (page.protocol !== "http:" && page.protocol !== "https:")) return false;
  const scheme = own.secure ? "https:" : page.protocol;
  return URL.parse(`${scheme}//${own.host}`)?.origin === page.origin;
}
