import type { changePassword } from "../../bus/messages/sessions.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { flush } from "../announce.ts";
import type { RegistryDeps } from "../deps.ts";
import { userActor } from "../events.ts";
import { organizationParty } from "../secrets/password.ts";
import { announceSessionEnds } from "../session-ends.ts";
import { recordEvent } from "../sql/events.ts";
import { endSessions } from "../sql/sessions.ts";
import { findUser, lockUsers, setPasswordHash } from "../sql/users.ts";

/**
 * Changes the caller's own password. The old one is asked for, so that a session that was left open is not enough, and
 * attempts are limited by session: guesses at log-ins do not count here. Every other session of the person ends; this one
 * goes on.
 */
export async function handleChangePassword(
  deps: RegistryDeps,
  request: RequestOf<typeof changePassword>,
): Promise<ReplyOf<typeof changePassword>> {
  const { caller, sessionId, address } = request;
  const { organizationId, userId } = caller;
  const known = await findUser(deps.sql, organizationId, userId);
  if (known === undefined) throw new RefusedError({ code: "permission_denied" });
  const passwordHash = await deps.passwords.hold(organizationParty(organizationId), async (checks) => {
    await deps.loginThrottle.consumeOfSession(sessionId);
    if (await checks.verify(known.password_hash, request.oldPassword)) return checks.hash(request.newPassword);
    deps.log.info({ refusal: "invalid_request", address, userId }, "password change refused");
    throw wrongOldPassword();
  });
  const keys = await deps.sql.begin(async (tx) => {
    const [held] = await lockUsers(tx, organizationId, [userId]);
    // Somebody else was faster: what was checked is no longer the password, or no longer lets anybody in.
    if (held?.password_hash !== known.password_hash) throw wrongOldPassword();
    if (held.status !== "active") throw new RefusedError({ code: "permission_denied" });
    await setPasswordHash(tx, userId, passwordHash);
    const ended = await endSessions(tx, userId, sessionId);
    const subject = { kind: "user", id: userId } as const;
    const action = "user_password_changed";
    await recordEvent(tx, { organizationId, actor: userActor(caller), action, subject });
    return await announceSessionEnds(tx, { userId, ended, by: caller });
  });
  return { barrier: await flush(deps, ...keys) };
}

function wrongOldPassword(): RefusedError {
  const detail = "This is not your password.";
  return new RefusedError({ code: "invalid_request", detail, errors: [{ pointer: "/old_password", detail }] });
}
