/** Who a person is: bearer for programs, cookie for pages; a cookie only from the service's own pages (design §5). */
import type { Permission, SessionEntry } from "../../services/bus/messages/caller.ts";
import { Refusal } from "../handlers/context.ts";
import { tokenFromCookie } from "../handlers/session-cookie.ts";
import type { SessionReplica } from "../replica/session-replica.ts";
import type { RequestFacts } from "./facts.ts";

export interface SessionCheckDeps {
  readonly sessions: SessionReplica;
  areSessionsFresh(nowMs: number): boolean;
}

/** Throws `replica_stale`, `session_missing`, `session_invalid`, `csrf_refused` or `permission_denied`. */
export function checkSession(deps: SessionCheckDeps, facts: RequestFacts, permission: Permission | null): SessionEntry {
  const nowMs = Date.now();
  if (!deps.areSessionsFresh(nowMs)) throw new Refusal("replica_stale");
  const bearer = bearerToken(facts.headers.authorization ?? "");
  const token = bearer === "" ? tokenFromCookie(facts.headers.cookie ?? "") : bearer;
  if (token === "") throw new Refusal("session_missing");
  if (bearer === "") refuseForeignOrigin(facts);
  const session = deps.sessions.find(token, nowMs);
  if (session === undefined) throw new Refusal("session_invalid");
  if (permission !== null && !session.permissions.includes(permission)) throw new Refusal("permission_denied");
  return session;
}

/**
 * Cross-site request forgery: a browser sends the cookie whoever wrote the page, but it also says who that was.
 * `Origin` decides where it was sent, else `Sec-Fetch-Site`; a request with neither does not come from a browser's page.
 */
export function refuseForeignOrigin(facts: RequestFacts): void {
  if (facts.method === "GET" || facts.method === "HEAD") return;
  const { origin, host } = facts.headers;
  if (origin !== undefined) {
    if (hostOf(origin) !== host?.toLowerCase()) throw new Refusal("csrf_refused");
    return;
  }
  const site = facts.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") throw new Refusal("csrf_refused");
}

function bearerToken(authorization: string): string {
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "";
}

function hostOf(origin: string): string | undefined {
  return URL.parse(origin)?.host;
}
