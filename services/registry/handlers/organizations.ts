/** Organizations, for the operator. */
import { BOUNDS } from "../../bus/bounds.ts";
import type { createOrganization, getOrganization, listOrganizations } from "../../bus/messages/organizations.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { RegistryDeps } from "../deps.ts";
import { OPERATOR } from "../events.ts";
import { mintInitialPassword } from "../secrets/initial-password.ts";
import { OPERATOR_PARTY } from "../secrets/password.ts";
import { recordEvent } from "../sql/events.ts";
import * as organizations from "../sql/organizations.ts";
import { insertUser } from "../sql/users.ts";
import { organizationOnWire, userOnWire } from "../wire.ts";

/**
 * Makes an organization and its first owner, who makes everything else. Without a password the owner gets one that is
 * returned this once. Refuses with `already_exists` when the e-mail address is taken; nothing is made then.
 */
export async function handleCreateOrganization(
  deps: RegistryDeps,
  { name, owner, by }: RequestOf<typeof createOrganization>,
): Promise<ReplyOf<typeof createOrganization>> {
  const initialPassword = owner.password === undefined ? mintInitialPassword() : null;
  const password = owner.password ?? initialPassword ?? "";
  const passwordHash = await deps.passwords.hold(OPERATOR_PARTY, (checks) => checks.hash(password));
  const actor = by === undefined ? OPERATOR : { ...OPERATOR, name: by };
  return deps.sql.begin(async (tx) => {
    const organizationId = await organizations.insertOrganization(tx, { name, sandbox: false });
    const { email } = owner;
    const user = await insertUser(tx, { organizationId, email, name: owner.name, role: "owner", passwordHash });
    if (user === undefined) throw new RefusedError({ code: "already_exists" });
    const subject = { kind: "organization", id: organizationId } as const;
    await recordEvent(tx, { organizationId, actor, action: "organization_created", subject, data: { name } });
    const userSubject = { kind: "user", id: user.user_id } as const;
    const data = { email: user.email, name: user.name, role: user.role };
    await recordEvent(tx, { organizationId, actor, action: "user_created", subject: userSubject, data });
    const row = await organizations.findOrganization(tx, organizationId);
    if (row === undefined) throw new Error("An organization was not inserted.");
    return { organization: organizationOnWire(row), owner: userOnWire(user), initialPassword };
  });
}

export async function handleListOrganizations(
  deps: RegistryDeps,
  { sinceId = 0, limit = BOUNDS.listedUnlessAsked }: RequestOf<typeof listOrganizations>,
): Promise<ReplyOf<typeof listOrganizations>> {
  const rows = await organizations.listOrganizations(deps.sql, { sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(organizationOnWire), limit);
  return { organizations: page, hasMore };
}

export async function handleGetOrganization(
  deps: RegistryDeps,
  { organizationId }: RequestOf<typeof getOrganization>,
): Promise<ReplyOf<typeof getOrganization>> {
  const row = await organizations.findOrganization(deps.sql, organizationId);
  if (row === undefined) throw new RefusedError({ code: "not_found" });
  return { organization: organizationOnWire(row) };
}
