/** The people of an organization and their access. A change of access ends sessions at every gateway and frees stations. */
import type { Actor } from "../../machines/actor.ts";
import { type Caller, type Permission, type Role, requirePermission } from "../bus/messages/caller.ts";
import type * as users from "../bus/messages/users.ts";
import type { RequestOf } from "../bus/operation.ts";
import { firstPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { insertOutboxRows, type OutboxKey, type OutboxRow, sessionKey, stationKey } from "../db/outbox.ts";
import type { Transaction } from "../db/pool.ts";
import { flush, type RegistryDeps, type RegistryHandler } from "./deps.ts";
import { ownerEvent } from "./events.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import { organizationParty } from "./passwords.ts";
import { recordEvent } from "./sql/events.ts";
import { type EndedSession, endSessions, listSessionEndKeys, unbindStations } from "./sql/sessions.ts";
import * as sql from "./sql/users.ts";

/** One role, one duty: an owner, who registers devices, cannot collect payments, and a cashier cannot register devices. */
const PERMISSIONS: Readonly<Record<Role, readonly Permission[]>> = {
  owner: ["organization.manage"],
  cashier: ["payments.collect"],
  reconciliation_operator: ["reconciliation.manage"],
};

export function permissionsOf(role: Role): Permission[] {
  return [...PERMISSIONS[role]];
}

export function userMessage(row: sql.UserRow): users.User {
  const { user_id: userId, email, name, role, status } = row;
  return { userId, email, name, role, permissions: permissionsOf(role), status };
}

export const listUsers: RegistryHandler<typeof users.listUsers> = async (deps, request) => {
  const { caller, sinceId, limit } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const rows = await sql.listUsers(deps.sql, { organizationId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(userMessage), limit);
  return { users: page, hasMore };
};

/**
 * An e-mail address names one person in the whole installation. An address that any person has is refused with
 * `already_exists`.
 */
export const createUser: RegistryHandler<typeof users.createUser> = async (deps, request) => {
  const { caller, email, name, role, password } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const passwordHash = await deps.passwords.hold(organizationParty(organizationId), (checks) => checks.hash(password));
  return deps.sql.begin(async (tx) => {
    if ((await sql.countActiveUsers(tx, organizationId)) >= REGISTRY_LIMITS.users) {
      const detail = `An organization has at most ${REGISTRY_LIMITS.users} active users; suspend one first.`;
      throw new RefusedError({ code: "conflict", detail });
    }
    const user = await sql.createUser(tx, { organizationId, email, name, role, passwordHash });
    if (user === undefined) throw new RefusedError({ code: "already_exists" });
    const data = { email: user.email, name, role };
    await recordEvent(tx, ownerEvent(caller, "user_created", { kind: "user", id: user.user_id }, data));
    return { user: userMessage(user) };
  });
};

/** A user after a change, and the keys whose delivery the answer waits for. */
interface Changed {
  readonly user: sql.UserRow;
  readonly keys: readonly OutboxKey[];
}

async function changed(deps: RegistryDeps, change: (tx: Transaction) => Promise<Changed>) {
  const { user, keys } = await deps.sql.begin(change);
  return { user: userMessage(user), barrier: await flush(deps, ...keys) };
}

/**
 * Changes a person's name, e-mail address and role. Another role ends their sessions, and with them their leases. Open
 * sessions keep the name that they began with. A field with its earlier value changes nothing.
 */
export const changeUser: RegistryHandler<typeof users.changeUser> = async (deps, request) => {
  const { caller, userId } = request;
  requirePermission(caller, "organization.manage");
  return changed(deps, async (tx) => {
    // Locks the owners as well: when two owners leave the role at once, one keeps it.
    const held = await sql.lockUsers(tx, caller.organizationId, [caller.userId, userId], { withOwners: true });
    const owners = held.filter(({ role, status }) => role === "owner" && status === "active");
    if (!owners.some((owner) => owner.user_id === caller.userId)) throw new RefusedError({ code: "permission_denied" });
    const before = existing(held.find((user) => user.user_id === userId));
    const from = { name: before.name, email: before.email, role: before.role };
    const to = {
      name: request.name ?? from.name,
      email: request.email === undefined ? from.email : sql.canonicalEmail(request.email),
      role: request.role ?? from.role,
    };
    // Without a role in the request there is nothing to wait for: gateways do not follow names and e-mail addresses.
    const keys = request.role === undefined ? [] : await keysOfEnds(tx, request);
    if (from.name === to.name && from.email === to.email && from.role === to.role) return { user: before, keys };
    if (to.role !== "owner" && owners.every((owner) => owner.user_id === userId)) {
      const detail = "An organization needs an owner; give another person the role first.";
      throw new RefusedError({ code: "conflict", detail });
    }
    const user = await sql.changeUser(tx, userId, to);
    if (user === undefined) throw new RefusedError({ code: "already_exists" });
    const ended = to.role === from.role ? [] : await endSessions(tx, userId);
    await recordEvent(tx, ownerEvent(caller, "user_changed", { kind: "user", id: userId }, { from, to }));
    return { user, keys: to.role === from.role ? keys : await keysOf(tx, request, ended) };
  });
};

const MOVES = {
  SUSPEND: { status: "suspended", action: "user_suspended" },
  RESUME: { status: "active", action: "user_resumed" },
} as const;

/** Suspends or resumes a person. A repetition changes nothing. */
export const moveUser: RegistryHandler<typeof users.moveUser> = async (deps, request) => {
  const { caller, userId, move } = request;
  const { status, action } = MOVES[move];
  requirePermission(caller, "organization.manage");
  return changed(deps, async (tx) => {
    const before = await lockOtherUser(tx, request, "You cannot suspend or resume yourself.");
    const own = [sessionKey(userId)];
    if (before.status === status)
      return { user: before, keys: move === "SUSPEND" ? await keysOfEnds(tx, request) : own };
    const row = await sql.moveUser(tx, userId, status);
    const ended = move === "SUSPEND" ? await endSessions(tx, userId) : [];
    const data = { from: before.status, to: status };
    await recordEvent(tx, ownerEvent(caller, action, { kind: "user", id: userId }, data));
    return { user: row, keys: move === "SUSPEND" ? await keysOf(tx, request, ended) : own };
  });
};

export const resetUserPassword: RegistryHandler<typeof users.resetUserPassword> = async (deps, request) => {
  const { caller, userId, password } = request;
  requirePermission(caller, "organization.manage");
  // Hashing takes a while, so it is done before a row is locked.
  const party = organizationParty(caller.organizationId);
  const passwordHash = await deps.passwords.hold(party, (checks) => checks.hash(password));
  return changed(deps, async (tx) => {
    const before = await lockOtherUser(tx, request, "Change your own password with your old one.");
    await sql.setPasswordHash(tx, userId, passwordHash);
    const ended = await endSessions(tx, userId);
    await recordEvent(tx, ownerEvent(caller, "user_password_reset", { kind: "user", id: userId }));
    return { user: before, keys: await keysOf(tx, request, ended) };
  });
};

type ByOwner = Pick<RequestOf<typeof users.moveUser>, "caller" | "userId">;

/**
 * Locks the acting owner and the user. When two owners suspend each other, the second one is suspended by then and gets an
 * error, so an organization always has an owner.
 */
async function lockOtherUser(
  tx: Transaction,
  { caller, userId }: ByOwner,
  ownDetail: string,
): Promise<sql.CheckableUser> {
  if (userId === caller.userId) throw new RefusedError({ code: "conflict", detail: ownDetail });
  const held = await sql.lockUsers(tx, caller.organizationId, [caller.userId, userId]);
  const acting = held.find((user) => user.user_id === caller.userId);
  if (acting?.status !== "active" || acting.role !== "owner") throw new RefusedError({ code: "permission_denied" });
  return existing(held.find((other) => other.user_id === userId));
}

/**
 * Writes the rows of the sessions that this change ends. Returns the keys of all session ends of the user that may be
 * under way.
 */
async function keysOf(
  tx: Transaction,
  { caller, userId }: ByOwner,
  ended: readonly EndedSession[],
): Promise<readonly OutboxKey[]> {
  const announced = await announceSessionEnds(tx, { userId, ended, by: stationActor(caller) });
  return [...new Set([...announced, ...(await keysOfEnds(tx, { userId }))])];
}

/**
 * What the repetition of a change waits for: the ends of the user's sessions, or of one of them, that the first request has
 * written. Its answer was lost, and gateways and stations may not have received them yet.
 */
export async function keysOfEnds(
  tx: Transaction,
  { userId, sessionId }: { readonly userId: number; readonly sessionId?: number },
): Promise<OutboxKey[]> {
  const withinMs = REGISTRY_LIMITS.sessionEndCountsMs;
  return [sessionKey(userId), ...(await listSessionEndKeys(tx, { userId, sessionId, withinMs }))];
}

interface SessionEnd {
  readonly userId: number;
  readonly ended: readonly EndedSession[];
  /** Who ended the sessions, as a station's log names them. */
  readonly by: Actor;
}

/**
 * Writes the outbox rows of ended sessions, so that each gateway and each station that a session drives receives the end,
 * whatever crashes. Returns the keys that wait for delivery. Call it last in a transaction, as for every outbox row.
 */
export async function announceSessionEnds(
  tx: Transaction,
  { more = [], ...end }: SessionEnd & { readonly more?: readonly OutboxRow[] },
): Promise<OutboxKey[]> {
  const rows = [...(await sessionEndRows(tx, end)), ...more];
  await insertOutboxRows(tx, rows);
  return [...new Set(rows.map(({ key }) => key))];
}

/** The outbox rows of ended sessions, for a transaction that has more to do before it writes them. */
export async function sessionEndRows(tx: Transaction, { userId, ended, by }: SessionEnd): Promise<OutboxRow[]> {
  const sessionIds = ended.map(({ session_id }) => session_id);
  const bound = ended.length === 0 ? [] : await unbindStations(tx, sessionIds);
  return [
    ...sessionDeletes(userId, ended),
    ...bound.map(({ station_id: stationId, session_ids }) => ({
      key: stationKey(stationId),
      kind: "station_command" as const,
      stationId,
      actor: by,
      command: { type: "sessions_ended" as const, sessionIds: session_ids },
    })),
  ];
}

/** Takes ended sessions out of the gateways. */
export function sessionDeletes(userId: number, ended: readonly EndedSession[]): OutboxRow[] {
  return ended.map(({ hash }) => ({ key: sessionKey(userId), kind: "session_delete", hash }));
}

/** The person as a station's log names them. */
export function stationActor({ userId, name, role }: Pick<Caller, "userId" | "name" | "role">): Actor {
  switch (role) {
    case "owner":
      return { kind: "owner", id: userId, name };
    case "cashier":
      return { kind: "cashier", id: userId, name };
    case "reconciliation_operator":
      return { kind: "registry", id: 0 };
  }
}
