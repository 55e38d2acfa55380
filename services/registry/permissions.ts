/** Which role may do what. */
import type { z } from "zod";
import type { Permission, roleSchema } from "../bus/messages/caller.ts";

export type Role = z.infer<typeof roleSchema>;

/** One role, one duty: whoever registers devices does not thereby collect money, and the other way round. */
const PERMISSIONS: Readonly<Record<Role, readonly Permission[]>> = {
  owner: ["organization.manage"],
  cashier: ["payments.collect"],
  reconciliation_operator: ["reconciliation.manage"],
};

export function permissionsOf(role: Role): Permission[] {
  return [...PERMISSIONS[role]];
}
