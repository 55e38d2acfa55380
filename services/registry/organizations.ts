/** Organizations and their first owners, for the operator of the installation. */
import { OPERATOR } from "../bus/messages/caller.ts";
import type * as organizations from "../bus/messages/organizations.ts";
import { firstPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { sessionKey } from "../db/outbox.ts";
import type { Transaction } from "../db/pool.ts";
import { flush, type RegistryDeps, type RegistryHandler } from "./deps.ts";
import { OPERATOR_PARTY } from "./passwords.ts";
import { mintInitialPassword } from "./secrets.ts";
import { recordEvent } from "./sql/events.ts";
import * as sql from "./sql/organizations.ts";
import { endSessions } from "./sql/sessions.ts";
import { createUser, getUserByEmail, lockUsers, setPasswordHash, type UserRow } from "./sql/users.ts";
import { announceSessionEnds, userMessage } from "./users.ts";

const organizationMessage = (row: sql.OrganizationRow): organizations.Organization => ({
  organizationId: row.organization_id,
  name: row.name,
  sandbox: row.sandbox,
  createdAtMs: row.created_at.getTime(),
});

/**
 * Creates an organization with its first owner, who creates everything else. Without a password in the request the owner
 * gets a random one, which only this answer holds. Refuses with `already_exists` when the e-mail address is taken.
 */
export const createOrganization: RegistryHandler<typeof organizations.createOrganization> = async (deps, request) => {
  const { name, owner, by } = request;
  const { initialPassword, passwordHash } = await ownerPassword(deps, owner.password);
  const actor = operator(by);
  return deps.sql.begin(async (tx) => {
    const organization = await sql.createOrganization(tx, { name, sandbox: false });
    const { organization_id: organizationId } = organization;
    const { email } = owner;
    const user = await createUser(tx, { organizationId, email, name: owner.name, role: "owner", passwordHash });
    if (user === undefined) throw new RefusedError({ code: "already_exists" });
    const subject = { kind: "organization", id: organizationId } as const;
    await recordEvent(tx, { organizationId, actor, action: "organization_created", subject, data: { name } });
    const userSubject = { kind: "user", id: user.user_id } as const;
    const data = { email: user.email, name: user.name, role: user.role };
    await recordEvent(tx, { organizationId, actor, action: "user_created", subject: userSubject, data });
    return { organization: organizationMessage(organization), owner: userMessage(user), initialPassword };
  });
};

/**
 * Sets the password of an owner who cannot log in, and who may be the only one. All sessions of the owner end.
 * Refuses with `not_found` when no owner has the e-mail address.
 */
export const resetOwnerPassword: RegistryHandler<typeof organizations.resetOwnerPassword> = async (deps, request) => {
  const { email, password, by } = request;
  // Hashing is slow, so it comes before the row lock.
  const { initialPassword, passwordHash } = await ownerPassword(deps, password);
  const { owner, keys } = await deps.sql.begin(async (tx) => {
    const held = await lockOwner(tx, email);
    const { user_id: userId, organization_id: organizationId } = held;
    await setPasswordHash(tx, userId, passwordHash);
    const ended = await endSessions(tx, userId);
    const subject = { kind: "user", id: userId } as const;
    await recordEvent(tx, { organizationId, actor: operator(by), action: "user_password_reset", subject });
    const announced = await announceSessionEnds(tx, { userId, ended, by: { kind: "registry", id: 0 } });
    return { owner: held, keys: new Set([sessionKey(userId), ...announced]) };
  });
  return { owner: userMessage(owner), initialPassword, barrier: await flush(deps, ...keys) };
};

async function lockOwner(tx: Transaction, email: string): Promise<UserRow> {
  const found = await getUserByEmail(tx, email);
  const [held] = found === undefined ? [] : await lockUsers(tx, found.organization_id, [found.user_id]);
  // The role or the e-mail address may have changed before the lock.
  if (held?.role === "owner" && held.email === found?.email) return held;
  throw new RefusedError({ code: "not_found", detail: "No owner has this e-mail address." });
}

/** The operator, with the name that the request gives. */
const operator = (by: string | undefined): typeof OPERATOR => (by === undefined ? OPERATOR : { ...OPERATOR, name: by });

/** The hash of an owner's password. `initialPassword` is a random password when the request gave none, otherwise null. */
async function ownerPassword(
  deps: RegistryDeps,
  requested: string | undefined,
): Promise<{ readonly initialPassword: string | null; readonly passwordHash: string }> {
  const password = requested ?? mintInitialPassword();
  const passwordHash = await deps.passwords.hold(OPERATOR_PARTY, (checks) => checks.hash(password));
  return { initialPassword: requested === undefined ? password : null, passwordHash };
}

export const listOrganizations: RegistryHandler<typeof organizations.listOrganizations> = async (deps, request) => {
  const { sinceId, limit } = request;
  const rows = await sql.listOrganizations(deps.sql, { sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(organizationMessage), limit);
  return { organizations: page, hasMore };
};

export const getOrganization: RegistryHandler<typeof organizations.getOrganization> = async (deps, request) => ({
  organization: organizationMessage(existing(await sql.getOrganization(deps.sql, request.organizationId))),
});
