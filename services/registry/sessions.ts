/** Sessions of people: log in and out, the change of the password, and the stations whose lease a session takes. */

import { BOUNDS } from "../bus/bounds.ts";
import type { announceSessions as AnnounceSessions } from "../bus/messages/announce.ts";
import { requirePermission } from "../bus/messages/caller.ts";
import type * as sessions from "../bus/messages/sessions.ts";
import type { ReplyOf, RequestOf } from "../bus/operation.ts";
import { firstPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { type OutboxKey, type OutboxRow, sessionKey } from "../db/outbox.ts";
import type { Transaction } from "../db/pool.ts";
import { type ClaimingHandler, flush, type RegistryDeps, type RegistryHandler } from "./deps.ts";
import { ownerEvent } from "./events.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import { addressParty, organizationParty, type Party } from "./passwords.ts";
import { hashKnownAddress, hashSecret, mintBrowserToken, mintSessionToken } from "./secrets.ts";
import { recordEvent } from "./sql/events.ts";
import * as sql from "./sql/sessions.ts";
import { getStation } from "./sql/stations.ts";
import { getUser, getUserAtPlace, lockUsers, setPasswordHash, type UserAtPlace, type UserRow } from "./sql/users.ts";
import { announceSessionEnds, keysOfEnds, permissionsOf, stationActor, userMessage } from "./users.ts";

/** The entry by which a gateway knows an open session. */
function sessionEntry(
  session: sql.SessionRow,
  user: Pick<UserRow, "user_id" | "organization_id" | "name" | "role">,
): sessions.SessionEntry {
  const { user_id: userId, organization_id: organizationId, name, role } = user;
  const expiresAtMs = session.expires_at.getTime();
  const permissions = permissionsOf(role);
  return { sessionId: session.session_id, expiresAtMs, userId, name, organizationId, role, permissions };
}

interface Browser {
  readonly token: string;
  readonly hash: Buffer;
}

/**
 * Opens a session. An unknown e-mail address and a wrong password get the same refusal, after the same work. A refused
 * attempt is logged, but is not in the audit log: only a known account could have an entry there, and the time of the
 * insert would reveal the account. A refused attempt claims no request either, because every step before the session
 * may run twice.
 */
export const logIn: ClaimingHandler<typeof sessions.logIn> = async (deps, request, claimNow) => {
  const { email, address, permission } = request;
  const addressHash = hashKnownAddress({ email, address }, deps.settings.ENROLLMENT_CODE_KEY);
  const sentBrowsers = (request.browserTokens ?? []).map(browserOf);
  const found = await deps.shares.lookUp(address, () =>
    getUserAtPlace(deps.sql, {
      email,
      addressHash,
      knownDays: REGISTRY_LIMITS.knownAddressDays,
      browserHashes: sentBrowsers.map(({ hash }) => hash),
      browserDays: BOUNDS.knownBrowserDays,
    }),
  );
  const knownBrowser = sentBrowsers.find(({ hash }) => found?.known_browser?.equals(hash));
  const user = await checkPassword(deps, request, found, knownBrowser);
  // Only after the password: an attempt without it must not learn what the person may do, or that they are suspended.
  const { user_id: userId, status } = user;
  if (status === "suspended") {
    deps.log.info({ refusal: "permission_denied", address, userId, status }, "log-in denied");
    throw suspended();
  }
  if (!permissionsOf(user.role).includes(permission)) {
    deps.log.info({ refusal: "permission_denied", address, userId, permission }, "log-in denied");
    throw new RefusedError({ code: "permission_denied" });
  }
  const browser = knownBrowser ?? browserOf(mintBrowserToken());
  const { keys, ...session } = await deps.shares.run(organizationParty(user.organization_id), async () => {
    await claimNow();
    return await openSession(deps, user, { addressHash, browser });
  });
  return { ...session, barrier: await flush(deps, ...keys) };
};

function browserOf(token: string): Browser {
  return { token, hash: hashSecret(token) };
}

function suspended(): RefusedError {
  return new RefusedError({ code: "permission_denied", detail: "The owner has suspended this account." });
}

/** Returns the user when the password is theirs. Throws `busy`, `login_throttled` or `login_failed`. */
async function checkPassword(
  deps: RegistryDeps,
  { email, address, password }: RequestOf<typeof sessions.logIn>,
  user: UserAtPlace | undefined,
  browser: Browser | undefined,
): Promise<UserAtPlace> {
  const attempt = { email, address, isKnownAddress: user?.is_known_address ?? false, browserHash: browser?.hash };
  const party = partyOf(address, user);
  // The place comes before the budgets: an attempt that finds no place uses up nothing.
  const { matches, attemptsLeft } = await deps.passwords.hold(party, async (checks) => ({
    attemptsLeft: await deps.shares.run(party, () => deps.loginThrottle.consume(attempt)),
    matches: await checks.verify(user?.password_hash, password),
  }));
  if (user !== undefined && matches) {
    await deps.shares.run(organizationParty(user.organization_id), () => deps.loginThrottle.succeeded(attempt));
    return user;
  }
  if (user && browser && attemptsLeft === 0) await sql.forgetBrowser(deps.sql, user.user_id, browser.hash);
  // Not logged as `userId`, because another person may have typed the e-mail address.
  deps.log.info({ refusal: "login_failed", address, accountId: user?.user_id }, "log-in refused");
  throw new RefusedError({ code: "login_failed" });
}

/** The party at the password checks: the organization where the account is known, else the address. */
function partyOf(address: string, user: UserAtPlace | undefined): Party {
  if (user?.is_known_address === true || user?.known_browser) return organizationParty(user.organization_id);
  return addressParty(address);
}

/** Makes a session of a person who may have it, and the row that opens it at every gateway. */
export async function mintSession(
  tx: Transaction,
  user: Pick<UserRow, "user_id" | "organization_id" | "name" | "role">,
  lifetimeMs: number,
): Promise<{ readonly token: string; readonly entry: sessions.SessionEntry; readonly put: OutboxRow }> {
  const { token, hash } = mintSessionToken();
  const { user_id: userId, organization_id: organizationId } = user;
  const entry = sessionEntry(await sql.createSession(tx, { organizationId, userId, hash, lifetimeMs }), user);
  return { token, entry, put: { key: sessionKey(userId), kind: "session_put", hash: hash.toString("hex"), entry } };
}

async function openSession(
  deps: RegistryDeps,
  user: UserAtPlace,
  { addressHash, browser }: { readonly addressHash: Buffer; readonly browser: Browser },
): Promise<Omit<ReplyOf<typeof sessions.logIn>, "barrier"> & { readonly keys: readonly OutboxKey[] }> {
  const { user_id: userId, organization_id: organizationId, role } = user;
  return deps.sql.begin(async (tx) => {
    // The password, the status or the role may have changed since the check. That change ended the sessions, so no new
    // one may begin.
    const [held] = await lockUsers(tx, organizationId, [userId]);
    if (held?.password_hash !== user.password_hash) throw new RefusedError({ code: "login_failed" });
    if (held.status === "suspended") throw suspended();
    if (held.role !== role) throw new RefusedError({ code: "permission_denied" });
    const { token, entry, put } = await mintSession(tx, held, REGISTRY_LIMITS.sessionLifetimeMs);
    await sql.rememberAddress(tx, { userId, addressHash }, REGISTRY_LIMITS.knownAddressesPerUser);
    await sql.rememberBrowser(tx, { userId, browserHash: browser.hash }, REGISTRY_LIMITS.knownBrowsersPerUser);
    const ended = await sql.endOlderSessions(tx, userId, REGISTRY_LIMITS.sessionsPerUser);
    await recordEvent(tx, ownerEvent(entry, "session_opened", { kind: "session", id: entry.sessionId }));
    const keys = await announceSessionEnds(tx, { userId, ended, by: stationActor(entry), more: [put] });
    const { expiresAtMs } = entry;
    return { token, browserToken: browser.token, expiresAtMs, user: userMessage(held), organizationId, keys };
  });
}

/** Ends one of the caller's sessions. A session that has ended already gets the same answer. */
export const logOut: RegistryHandler<typeof sessions.logOut> = (deps, { caller, sessionId }) =>
  endOneSession(deps, { caller, userId: caller.userId, sessionId });

/** Ends a session of a person of the caller's organization, if it is open. */
export async function endOneSession(
  deps: RegistryDeps,
  { caller, userId, sessionId }: RequestOf<typeof sessions.logOut> & { readonly userId: number },
): Promise<ReplyOf<typeof sessions.logOut>> {
  const { organizationId } = caller;
  const keys = await deps.sql.begin(async (tx) => {
    const ended = await sql.endSession(tx, { organizationId, userId, sessionId });
    if (ended === undefined) return await keysOfEnds(tx, { userId, sessionId });
    await recordEvent(tx, ownerEvent(caller, "session_ended", { kind: "session", id: sessionId }));
    return await announceSessionEnds(tx, { userId, ended: [ended], by: stationActor(caller) });
  });
  return flush(deps, ...keys);
}

/**
 * Changes the caller's password. Requires the old one, so that a session that was left open is not enough. Attempts are
 * limited by session: guesses at log-ins do not count here. Every other session of the person ends; this one goes on.
 */
export const changePassword: RegistryHandler<typeof sessions.changePassword> = async (deps, request) => {
  const { caller, sessionId, address } = request;
  const { organizationId, userId } = caller;
  const known = await getUser(deps.sql, organizationId, userId);
  if (known === undefined) throw new RefusedError({ code: "permission_denied" });
  const passwordHash = await deps.passwords.hold(organizationParty(organizationId), async (checks) => {
    await deps.loginThrottle.consumeOfSession(sessionId);
    if (await checks.verify(known.password_hash, request.oldPassword)) return checks.hash(request.newPassword);
    deps.log.info({ refusal: "invalid_request", address, userId }, "password change refused");
    throw wrongOldPassword();
  });
  const keys = await deps.sql.begin(async (tx) => {
    const [held] = await lockUsers(tx, organizationId, [userId]);
    // Another request was faster: the password has changed, or the person is suspended.
    if (held?.password_hash !== known.password_hash) throw wrongOldPassword();
    if (held.status !== "active") throw new RefusedError({ code: "permission_denied" });
    await setPasswordHash(tx, userId, passwordHash);
    const ended = await sql.endSessions(tx, userId, sessionId);
    await recordEvent(tx, ownerEvent(caller, "user_password_changed", { kind: "user", id: userId }));
    return await announceSessionEnds(tx, { userId, ended, by: stationActor(caller) });
  });
  return { barrier: await flush(deps, ...keys) };
};

function wrongOldPassword(): RefusedError {
  const detail = "This is not your password.";
  return new RefusedError({
    code: "invalid_request",
    detail,
    errors: [{ pointer: "/old_password", code: "wrong_password", detail }],
  });
}

/**
 * Stores that a session is about to take a station's lease. The transaction holds the session open. A change that ends
 * the session comes either before, and then the binding is refused here, or after, and then it finds the station and
 * notifies it.
 */
export const bindStation: RegistryHandler<typeof sessions.bindStation> = async (deps, request) => {
  const { caller, sessionId, stationId } = request;
  const { organizationId, userId } = requirePermission(caller, "payments.collect");
  await deps.sql.begin(async (tx) => {
    const isOpen = await sql.holdSessionOpen(tx, { organizationId, userId, sessionId });
    if (!isOpen) throw new RefusedError({ code: "session_ended" });
    existing(await getStation(tx, organizationId, stationId));
    await sql.bindStation(tx, { sessionId, stationId });
    const most = REGISTRY_LIMITS.stationsPerSession;
    if ((await sql.countBoundStations(tx, sessionId)) > most) {
      const detail = `One session takes at most ${most} stations; log in again to take more.`;
      throw new RefusedError({ code: "conflict", detail });
    }
  });
  return {};
};

/** A page of all sessions, for a bus that has lost data. The relay calls it. */
export const announceSessions: RegistryHandler<typeof AnnounceSessions> = async (deps, { sinceId, limit }) => {
  const rows = await sql.announceSessions(deps.sql, { sinceId, limit: limit + 1 });
  const found = rows.map((row) => ({
    id: row.session_id,
    hash: row.hash,
    entry: row.is_open ? sessionEntry(row, row) : null,
  }));
  const { page, hasMore } = firstPage(found, limit);
  return { entries: page, hasMore };
};
