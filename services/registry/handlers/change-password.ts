import type { changePassword } from "../../bus/messages/user-access.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { insertOutboxRows, sessionKey } from "../../db/outbox.ts";
import { flush, sessionDeletes } from "../announce.ts";
import type { RegistryDeps } from "../deps.ts";
import { recordEvent, userActor } from "../sql/registry-events.ts";
import { endSessions } from "../sql/sessions.ts";
import { findUser, lockUsers, setPasswordHash } from "../sql/users.ts";

/**
 * Changes the caller's own password. The old one is asked for, so that a session that was left open is not enough, and
 * asking is throttled as a log-in is. Every other session of the person ends; this one goes on.
 */
export async function handleChangePassword(
  deps: RegistryDeps,
  request: RequestOf<typeof changePassword>,
): Promise<ReplyOf<typeof changePassword>> {
  const { caller, sessionId, address } = request;
  const { organizationId, userId } = caller;
  const known = await findUser(deps.sql, organizationId, userId);
  if (known === undefined) throw new RefusedError({ code: "permission_denied" });
  const attempt = { address, email: known.email };
  await deps.loginThrottle.consume(attempt);
  if (!(await deps.passwords.verify(known.password_hash, request.oldPassword))) {
    deps.log.info({ address, userId }, "password change refused");
    throw wrongOldPassword();
  }
  await deps.loginThrottle.succeeded(attempt);
  const passwordHash = await deps.passwords.hash(request.newPassword);
  await deps.sql.begin(async (tx) => {
    const [held] = await lockUsers(tx, organizationId, [userId]);
    // Somebody else was faster: what was checked is no longer the password, or no longer lets anybody in.
    if (held?.password_hash !== known.password_hash) throw wrongOldPassword();
    if (held.status !== "active") throw new RefusedError({ code: "permission_denied" });
    await setPasswordHash(tx, userId, passwordHash);
    const hashes = await endSessions(tx, userId, sessionId);
    const subject = { kind: "user", id: userId } as const;
    const action = "user_password_changed";
    await recordEvent(tx, { organizationId, actor: userActor(caller), action, subject });
    await insertOutboxRows(tx, sessionDeletes(userId, hashes));
  });
  return { barrier: await flush(deps, sessionKey(userId)) };
}

function wrongOldPassword(): RefusedError {
  const detail = "This is not your password.";
  return new RefusedError({ code: "invalid_request", detail, errors: [{ pointer: "/old_password", detail }] });
}
