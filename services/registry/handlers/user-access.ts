/** What an owner does about a person's access: suspend, resume, set a new password. It holds at every gateway at once. */

import { requirePermission } from "../../bus/access.ts";
import type { moveUser, resetUserPassword } from "../../bus/messages/users.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { sessionKey } from "../../db/outbox.ts";
import type { Transaction } from "../../db/pool.ts";
import { flush } from "../announce.ts";
import type { RegistryDeps } from "../deps.ts";
import { userActor } from "../events.ts";
import { organizationParty } from "../secrets/password.ts";
import { announceSessionEnds } from "../session-ends.ts";
import { recordEvent } from "../sql/events.ts";
import { endSessions } from "../sql/sessions.ts";
import { type CheckableUser, lockUsers, setPasswordHash, setUserStatus } from "../sql/users.ts";
import { userOnWire } from "../wire.ts";

type Asked = Pick<RequestOf<typeof moveUser>, "caller" | "userId">;

const MOVES = {
  SUSPEND: { status: "suspended", action: "user_suspended" },
  RESUME: { status: "active", action: "user_resumed" },
} as const;

/** Suspends or resumes. Again changes nothing, so that a repetition is harmless. */
export async function handleMoveUser(
  deps: RegistryDeps,
  request: RequestOf<typeof moveUser>,
): Promise<ReplyOf<typeof moveUser>> {
  const { status, action } = MOVES[request.move];
  requirePermission(request.caller, "organization.manage");
  const { user, keys } = await deps.sql.begin(async (tx) => {
    const before = await lockOtherUser(tx, request, "Nobody suspends or resumes themselves.");
    const { user_id: userId } = before;
    if (before.status === status) return { user: before, keys: [sessionKey(userId)] };
    const row = await setUserStatus(tx, userId, status);
    const ended = status === "suspended" ? await endSessions(tx, userId) : [];
    await record(tx, request, action, { from: before.status, to: status });
    const announced = await announceSessionEnds(tx, { userId, ended, by: request.caller });
    return { user: row, keys: [...new Set([sessionKey(userId), ...announced])] };
  });
  return { user: userOnWire(user), barrier: await flush(deps, ...keys) };
}

export async function handleResetPassword(
  deps: RegistryDeps,
  request: RequestOf<typeof resetUserPassword>,
): Promise<ReplyOf<typeof resetUserPassword>> {
  requirePermission(request.caller, "organization.manage");
  // Hashing takes a while, so it is done before anything is held.
  const passwordHash = await deps.passwords.hold(organizationParty(request.caller.organizationId), (checks) =>
    checks.hash(request.password),
  );
  const { user, keys } = await deps.sql.begin(async (tx) => {
    const before = await lockOtherUser(tx, request, "Change your own password with your old one.");
    const { user_id: userId } = before;
    await setPasswordHash(tx, userId, passwordHash);
    const ended = await endSessions(tx, userId);
    await record(tx, request, "user_password_reset", {});
    const announced = await announceSessionEnds(tx, { userId, ended, by: request.caller });
    // Also without sessions to end: a repetition shows whether those that the first request ended are gone.
    return { user: before, keys: [...new Set([sessionKey(userId), ...announced])] };
  });
  return { user: userOnWire(user), barrier: await flush(deps, ...keys) };
}

/**
 * The user whom somebody else acts on, both held: of two owners who suspend each other the second is no longer one who
 * may, so that an organization always keeps one.
 */
async function lockOtherUser(tx: Transaction, { caller, userId }: Asked, ownDetail: string): Promise<CheckableUser> {
  if (userId === caller.userId) throw new RefusedError({ code: "conflict", detail: ownDetail });
  const held = await lockUsers(tx, caller.organizationId, [caller.userId, userId]);
  const acting = held.find((user) => user.user_id === caller.userId);
  if (acting?.status !== "active" || acting.role !== "owner") throw new RefusedError({ code: "permission_denied" });
  const user = held.find((other) => other.user_id === userId);
  if (user === undefined) throw new RefusedError({ code: "not_found" });
  return user;
}

function record(tx: Transaction, { caller, userId }: Asked, action: string, data: Record<string, string>) {
  const { organizationId } = caller;
  const subject = { kind: "user", id: userId } as const;
  return recordEvent(tx, { organizationId, actor: userActor(caller), action, subject, data });
}
