import { requirePermission } from "../../bus/access.ts";
import { BOUNDS } from "../../bus/bounds.ts";
import type { createUser, listUsers } from "../../bus/messages/users.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { RegistryDeps } from "../deps.ts";
import { userActor } from "../events.ts";
import { REGISTRY_LIMITS } from "../limits.ts";
import { organizationParty } from "../secrets/password.ts";
import { recordEvent } from "../sql/events.ts";
import * as users from "../sql/users.ts";
import { userOnWire } from "../wire.ts";

export async function handleListUsers(
  deps: RegistryDeps,
  { caller, sinceId = 0, limit = BOUNDS.listedUnlessAsked }: RequestOf<typeof listUsers>,
): Promise<ReplyOf<typeof listUsers>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const rows = await users.listUsers(deps.sql, { organizationId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(userOnWire), limit);
  return { users: page, hasMore };
}

/** An e-mail address names one person in the whole installation, so a taken one is `already_exists` wherever it is. */
export async function handleCreateUser(
  deps: RegistryDeps,
  { caller, email, name, role, password }: RequestOf<typeof createUser>,
): Promise<ReplyOf<typeof createUser>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const passwordHash = await deps.passwords.hold(organizationParty(organizationId), (checks) => checks.hash(password));
  return deps.sql.begin(async (tx) => {
    if ((await users.countUsers(tx, organizationId)) >= REGISTRY_LIMITS.users) {
      const detail = `An organization has at most ${REGISTRY_LIMITS.users} users.`;
      throw new RefusedError({ code: "conflict", detail });
    }
    const user = await users.insertUser(tx, { organizationId, email, name, role, passwordHash });
    if (user === undefined) throw new RefusedError({ code: "already_exists" });
    const subject = { kind: "user", id: user.user_id } as const;
    const data = { email: user.email, name, role };
    await recordEvent(tx, { organizationId, actor: userActor(caller), action: "user_created", subject, data });
    return { user: userOnWire(user) };
  });
}
