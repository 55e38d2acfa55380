/** Which role may do what, and the check that every handler starts with. */

import type { z } from "zod";
import type { Caller, Permission, roleSchema } from "../bus/messages/caller.ts";
import { RefusedError } from "../bus/refusals.ts";

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

/** Throws `permission_denied` unless the caller holds one of these. */
export function requirePermission(caller: Caller, ...anyOf: readonly Permission[]): void {
  if (anyOf.some((permission) => caller.permissions.includes(permission))) return;
  throw new RefusedError({ code: "permission_denied" });
}
