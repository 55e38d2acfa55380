/** Database rows as the messages show them; rows themselves never leave the service. */
import type { z } from "zod";
import type { Organization } from "../bus/messages/organizations.ts";
import type { userSchema } from "../bus/messages/users.ts";
import { permissionsOf } from "./permissions.ts";
import type { OrganizationRow } from "./sql/organizations.ts";
import type { UserRow } from "./sql/users.ts";

export function organizationOnWire(row: OrganizationRow): Organization {
  const { organization_id: organizationId, name, sandbox } = row;
  return { organizationId, name, sandbox, createdAtMs: row.created_at.getTime() };
}

export function userOnWire(row: UserRow): z.infer<typeof userSchema> {
  return {
    userId: row.user_id,
    email: row.email,
    name: row.name,
    role: row.role,
    permissions: permissionsOf(row.role),
    status: row.status,
  };
}
