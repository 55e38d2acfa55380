/** One-time links into the sandbox: the first minute needs no password. */
import type * as links from "../bus/messages/login-links.ts";
import { RefusedError } from "../bus/refusals.ts";
import { insertOutboxRows, sessionKey } from "../db/outbox.ts";
import { flush, type RegistryHandler } from "./deps.ts";
import { ownerEvent } from "./events.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import { SANDBOX_PEOPLE } from "./sandbox-organization.ts";
import { hashSecret, mintLinkToken } from "./secrets.ts";
import { mintSession } from "./sessions.ts";
import { recordEvent } from "./sql/events.ts";
import * as sql from "./sql/login-links.ts";
import { endOlderSessions } from "./sql/sessions.ts";
import { getUserByEmail } from "./sql/users.ts";
import { announceSessionEnds, stationActor, userMessage } from "./users.ts";

export const createLoginLink: RegistryHandler<typeof links.createLoginLink> = async (deps, request) => {
  const { token, hash } = mintLinkToken();
  const lifetimeMs = REGISTRY_LIMITS.loginLinkLifetimeMs;
  const row = await deps.sql.begin((tx) => sql.createLoginLink(tx, { ...request, hash, lifetimeMs }));
  return { token, expiresAtMs: row.expires_at.getTime() };
};

/** A person who is suspended or has another role by now gets no session. */
export const logInByLink: RegistryHandler<typeof links.logInByLink> = async (deps, { token }) => {
  const { keys, ...reply } = await deps.sql.begin(async (tx) => {
    const link = await sql.spendLoginLink(tx, hashSecret(token));
    if (link === undefined) {
      const detail = "This link was used, or its time is over; start the service again for a new one.";
      throw new RefusedError({ code: "not_found", detail });
    }
    const { organization_id: organizationId, station_id: stationId } = link;
    const opened = [];
    for (const { email, role } of SANDBOX_PEOPLE) {
      const user = await getUserByEmail(tx, email);
      if (user?.organization_id !== organizationId || user.status !== "active" || user.role !== role) continue;
      const minted = await mintSession(tx, user, REGISTRY_LIMITS.sessionLifetimeMs);
      const ended = await endOlderSessions(tx, user.user_id, REGISTRY_LIMITS.sessionsPerUser);
      opened.push({ user, ended, ...minted });
    }
    for (const { entry } of opened) {
      const subject = { kind: "session", id: entry.sessionId } as const;
      await recordEvent(tx, ownerEvent(entry, "session_opened", subject, { by: "login_link" }));
    }
    for (const { entry, ended, put } of opened) {
      const { userId } = entry;
      if (ended.length === 0) await insertOutboxRows(tx, [put]);
      else await announceSessionEnds(tx, { userId, ended, by: stationActor(entry), more: [put] });
    }
    return {
      organizationId,
      stationId,
      sessions: opened.map(({ token: sessionToken, entry, user }) => ({
        token: sessionToken,
        expiresAtMs: entry.expiresAtMs,
        user: userMessage(user),
      })),
      keys: opened.map(({ entry }) => sessionKey(entry.userId)),
    };
  });
  return { ...reply, barrier: await flush(deps, ...keys) };
};
