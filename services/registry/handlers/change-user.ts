import { requirePermission } from "../../bus/access.ts";
import type { changeUser } from "../../bus/messages/users.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { type OutboxKey, sessionKey } from "../../db/outbox.ts";
import type { Transaction } from "../../db/pool.ts";
import { flush } from "../announce.ts";
import type { RegistryDeps } from "../deps.ts";
import { userActor } from "../events.ts";
import { announceSessionEnds } from "../session-ends.ts";
import { recordEvent } from "../sql/events.ts";
import { endSessions } from "../sql/sessions.ts";
import { canonicalEmail, lockUsersAndOwners, setUserDescription, type UserRow } from "../sql/users.ts";
import { userOnWire } from "../wire.ts";

/**
 * Changes a person's name, e-mail address and role. Another role ends their sessions, and with them their leases. Open
 * sessions keep the name that they began with. What is as it was changes nothing.
 */
export async function handleChangeUser(
  deps: RegistryDeps,
  request: RequestOf<typeof changeUser>,
): Promise<ReplyOf<typeof changeUser>> {
  requirePermission(request.caller, "organization.manage");
  const { user, keys } = await deps.sql.begin((tx) => change(tx, request));
  return { user: userOnWire(user), barrier: await flush(deps, ...keys) };
}

async function change(
  tx: Transaction,
  request: RequestOf<typeof changeUser>,
): Promise<{ readonly user: UserRow; readonly keys: readonly OutboxKey[] }> {
  const { caller, userId } = request;
  const { organizationId } = caller;
  // Owners as well: of two owners who leave the role at once one stays.
  const held = await lockUsersAndOwners(tx, organizationId, [caller.userId, userId]);
  const owners = held.filter(({ role, status }) => role === "owner" && status === "active");
  if (!owners.some((owner) => owner.user_id === caller.userId)) throw new RefusedError({ code: "permission_denied" });
  const before = held.find((user) => user.user_id === userId);
  if (before === undefined) throw new RefusedError({ code: "not_found" });
  const from = descriptionOf(before);
  const to = {
    name: request.name ?? from.name,
    email: request.email === undefined ? from.email : canonicalEmail(request.email),
    role: request.role ?? from.role,
  };
  // A repetition shows whether the sessions that the first request ended are gone. A name alone is nowhere else.
  const ownKeys = request.role === undefined ? [] : [sessionKey(userId)];
  if (from.name === to.name && from.email === to.email && from.role === to.role) return { user: before, keys: ownKeys };
  if (to.role !== "owner" && owners.every((owner) => owner.user_id === userId)) {
    const detail = "An organization keeps one owner; give another person the role first.";
    throw new RefusedError({ code: "conflict", detail });
  }
  const user = await setUserDescription(tx, userId, to);
  if (user === undefined) throw new RefusedError({ code: "already_exists" });
  const ended = to.role === from.role ? [] : await endSessions(tx, userId);
  const subject = { kind: "user", id: userId } as const;
  const data = { from, to };
  await recordEvent(tx, { organizationId, actor: userActor(caller), action: "user_changed", subject, data });
  return { user, keys: [...new Set([...ownKeys, ...(await announceSessionEnds(tx, { userId, ended, by: caller }))])] };
}

const descriptionOf = ({ name, email, role }: UserRow) => ({ name, email, role });
