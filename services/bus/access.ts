/** Who may do what here. The organization is checked by each query. */
import type { Caller, Permission } from "./messages/caller.ts";
import { RefusedError } from "./refusals.ts";

/** Throws `permission_denied`. */
export function requirePermission(caller: Caller, permission: Permission): void {
  if (!caller.permissions.includes(permission)) throw new RefusedError({ code: "permission_denied" });
}
