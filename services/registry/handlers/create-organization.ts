import type { createOrganization } from "../../bus/messages/user-access.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { RegistryDeps } from "../deps.ts";
import { OPERATOR_PARTY } from "../secrets/password.ts";
import { insertOrganization } from "../sql/organizations.ts";
import { OPERATOR, recordEvent } from "../sql/registry-events.ts";
import { insertUser } from "../sql/users.ts";
import { userOnWire } from "../wire.ts";

/**
 * Makes an organization and its first owner, who makes everything else. Refuses with `already_exists` when the e-mail
 * address is taken; nothing is made then.
 */
export async function handleCreateOrganization(
  deps: RegistryDeps,
  { name, owner }: RequestOf<typeof createOrganization>,
): Promise<ReplyOf<typeof createOrganization>> {
  const passwordHash = await deps.passwords.hold(OPERATOR_PARTY, (checks) => checks.hash(owner.password));
  return deps.sql.begin(async (tx) => {
    const organizationId = await insertOrganization(tx, { name, sandbox: false });
    const { email } = owner;
    const user = await insertUser(tx, { organizationId, email, name: owner.name, role: "owner", passwordHash });
    if (user === undefined) throw new RefusedError({ code: "already_exists" });
    const made = { organizationId, actor: OPERATOR };
    const organization = { kind: "organization", id: organizationId } as const;
    await recordEvent(tx, { ...made, action: "organization_created", subject: organization, data: { name } });
    const subject = { kind: "user", id: user.user_id } as const;
    const data = { email: user.email, name: user.name, role: user.role };
    await recordEvent(tx, { ...made, action: "user_created", subject, data });
    return { organizationId, owner: userOnWire(user) };
  });
}
