import { addressBlock } from "../../bus/address-block.ts";
import { BOUNDS } from "../../bus/bounds.ts";
import type { logIn, logOut } from "../../bus/messages/sessions.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { type OutboxKey, type OutboxRow, sessionKey } from "../../db/outbox.ts";
import { flush } from "../announce.ts";
import type { RegistryDeps } from "../deps.ts";
import { userActor } from "../events.ts";
import { REGISTRY_LIMITS } from "../limits.ts";
import { permissionsOf } from "../permissions.ts";
import { mintBrowserToken } from "../secrets/browser-token.ts";
import { hashKnownAddress } from "../secrets/known-address.ts";
import { organizationParty } from "../secrets/password.ts";
import type { Party } from "../secrets/password-turns.ts";
import { hashSecret } from "../secrets/secret-hash.ts";
import { mintSessionToken } from "../secrets/session-token.ts";
import { announceSessionEnds } from "../session-ends.ts";
import { recordEvent } from "../sql/events.ts";
import { rememberAddress } from "../sql/known-addresses.ts";
import { forgetBrowser, rememberBrowser } from "../sql/known-browsers.ts";
import { endOlderSessions, endSession, insertSession } from "../sql/sessions.ts";
import { findUserAtPlace, lockUsers, type UserAtPlace } from "../sql/users.ts";
import { userOnWire } from "../wire.ts";

/**
 * Opens a session. An unknown e-mail address and a wrong password are refused alike, after the same work; the trail of
 * a refused attempt is a log line, because a row would be written for a known account only and its time would tell.
 */
export async function handleLogin(
  deps: RegistryDeps,
  request: RequestOf<typeof logIn>,
): Promise<ReplyOf<typeof logIn>> {
  const { email, address } = request;
  const addressHash = hashKnownAddress({ email, address }, deps.settings.ENROLLMENT_CODE_KEY);
  const sentBrowsers = (request.browserTokens ?? []).map(browserOf);
  const user = await findUserAtPlace(deps.sql, {
    email,
    addressHash,
    knownDays: REGISTRY_LIMITS.knownAddressDays,
    browserHashes: sentBrowsers.map(({ hash }) => hash),
    browserDays: BOUNDS.knownBrowserDays,
  });
  const browser = sentBrowsers.find(({ hash }) => user?.known_browser?.equals(hash));
  const attempt = { email, address, isKnownAddress: user?.is_known_address ?? false, browserHash: browser?.hash };
  // The place comes before the budgets: an attempt that finds none uses up nothing.
  const { matches, attemptsLeft } = await deps.passwords.hold(partyOf(address, user), async (checks) => ({
    attemptsLeft: await deps.loginThrottle.consume(attempt),
    matches: await checks.verify(user?.password_hash, request.password),
  }));
  if (user === undefined || !matches) {
    // Not as `userId`: it is not known that this person typed it.
    if (user && browser && attemptsLeft === 0) await forgetBrowser(deps.sql, user.user_id, browser.hash);
    deps.log.info({ refusal: "login_failed", address, accountId: user?.user_id }, "log-in refused");
    throw new RefusedError({ code: "login_failed" });
  }
  await deps.loginThrottle.succeeded(attempt);
  // Only now: without the password nobody is told what a person may do, or that they are suspended.
  if (user.status === "suspended") {
    const { user_id: userId, status } = user;
    deps.log.info({ refusal: "permission_denied", address, userId, status }, "log-in denied");
    throw suspended();
  }
  if (!permissionsOf(user.role).includes(request.permission)) {
    const { permission } = request;
    deps.log.info({ refusal: "permission_denied", address, userId: user.user_id, permission }, "log-in denied");
    throw new RefusedError({ code: "permission_denied" });
  }
  const { keys, ...session } = await openSession(deps, user, {
    addressHash,
    browser: browser ?? browserOf(mintBrowserToken()),
  });
  return { ...session, barrier: await flush(deps, ...keys) };
}

/** Who shares turns at the password checks: the organization where the account is known, else the address. */
function partyOf(address: string, user: UserAtPlace | undefined): Party {
  if (user?.is_known_address === true || user?.known_browser) return organizationParty(user.organization_id);
  return { lane: "others", key: addressBlock(address) };
}

interface Browser {
  readonly token: string;
  readonly hash: Buffer;
}

function browserOf(token: string): Browser {
  return { token, hash: hashSecret(token) };
}

function suspended(): RefusedError {
  return new RefusedError({ code: "permission_denied", detail: "The owner has suspended this account." });
}

async function openSession(
  deps: RegistryDeps,
  user: UserAtPlace,
  place: { readonly addressHash: Buffer; readonly browser: Browser },
): Promise<Omit<ReplyOf<typeof logIn>, "barrier"> & { readonly keys: readonly OutboxKey[] }> {
  const { token, hash } = mintSessionToken();
  const { addressHash, browser } = place;
  const { user_id: userId, organization_id: organizationId, role } = user;
  return deps.sql.begin(async (tx) => {
    // What was checked may have changed meanwhile; the sessions were ended then, and this is no new one.
    const [held] = await lockUsers(tx, organizationId, [userId]);
    if (held?.password_hash !== user.password_hash) throw new RefusedError({ code: "login_failed" });
    if (held.status === "suspended") throw suspended();
    if (held.role !== role) throw new RefusedError({ code: "permission_denied" });
    const { name } = held;
    const session = await insertSession(tx, {
      organizationId,
      userId,
      hash,
      lifetimeMs: REGISTRY_LIMITS.sessionLifetimeMs,
    });
    await rememberAddress(tx, { userId, addressHash }, REGISTRY_LIMITS.knownAddressesPerUser);
    await rememberBrowser(tx, { userId, browserHash: browser.hash }, REGISTRY_LIMITS.knownBrowsersPerUser);
    const ended = await endOlderSessions(tx, userId, REGISTRY_LIMITS.sessionsPerUser);
    const sessionId = session.session_id;
    const expiresAtMs = session.expires_at.getTime();
    const actor = userActor({ userId, name, role });
    await recordEvent(tx, {
      organizationId,
      actor,
      action: "session_opened",
      subject: { kind: "session", id: sessionId },
    });
    const permissions = permissionsOf(role);
    const put: OutboxRow = {
      key: sessionKey(userId),
      kind: "session_put",
      hash: hash.toString("hex"),
      entry: { sessionId, expiresAtMs, userId, name, organizationId, role, permissions },
    };
    const keys = await announceSessionEnds(tx, { userId, ended, by: { userId, name, role }, more: [put] });
    return { token, browserToken: browser.token, expiresAtMs, user: userOnWire(held), organizationId, keys };
  });
}

/** Ends one of the caller's own sessions; one that is over already is answered alike. */
export async function handleLogout(
  deps: RegistryDeps,
  request: RequestOf<typeof logOut>,
): Promise<ReplyOf<typeof logOut>> {
  const { caller, sessionId } = request;
  const { organizationId, userId } = caller;
  const keys = await deps.sql.begin(async (tx) => {
    const ended = await endSession(tx, { organizationId, userId, sessionId });
    if (ended === undefined) return [sessionKey(userId)];
    await recordEvent(tx, {
      organizationId,
      actor: userActor(caller),
      action: "session_ended",
      subject: { kind: "session", id: sessionId },
    });
    return await announceSessionEnds(tx, { userId, ended: [ended], by: caller });
  });
  return flush(deps, ...keys);
}
