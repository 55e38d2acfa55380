/** Organizations and their first owners, for the operator of the installation. */
import { BOUNDS } from "../bus/bounds.ts";
import type * as organizations from "../bus/messages/organizations.ts";
import { firstPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import type { RegistryHandler } from "./deps.ts";
import { OPERATOR } from "./events.ts";
import { OPERATOR_PARTY } from "./passwords.ts";
import { mintInitialPassword } from "./secrets.ts";
import { recordEvent } from "./sql/events.ts";
import * as sql from "./sql/organizations.ts";
import { createUser } from "./sql/users.ts";
import { userMessage } from "./users.ts";

const organizationMessage = (row: sql.OrganizationRow): organizations.Organization => ({
  organizationId: row.organization_id,
  name: row.name,
  sandbox: row.sandbox,
  createdAtMs: row.created_at.getTime(),
});

/**
 * The first owner makes everything else. Without a password the owner gets one that is returned this once. Refuses with
 * `already_exists` when the e-mail address is taken; nothing is made then.
 */
export const createOrganization: RegistryHandler<typeof organizations.createOrganization> = async (deps, request) => {
  const { name, owner, by } = request;
  const initialPassword = owner.password === undefined ? mintInitialPassword() : null;
  const password = owner.password ?? initialPassword ?? "";
  const passwordHash = await deps.passwords.hold(OPERATOR_PARTY, (checks) => checks.hash(password));
  const actor = by === undefined ? OPERATOR : { ...OPERATOR, name: by };
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

export const listOrganizations: RegistryHandler<typeof organizations.listOrganizations> = async (deps, request) => {
  const { sinceId = 0, limit = BOUNDS.listedUnlessAsked } = request;
  const rows = await sql.listOrganizations(deps.sql, { sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(organizationMessage), limit);
  return { organizations: page, hasMore };
};

export const getOrganization: RegistryHandler<typeof organizations.getOrganization> = async (deps, request) => ({
  organization: organizationMessage(existing(await sql.getOrganization(deps.sql, request.organizationId))),
});
