/** Who may read the audit trail of their organization. */
import type { Caller, Permission } from "../bus/messages/caller.ts";
import { RefusedError } from "../bus/refusals.ts";

/** Throws `permission_denied` unless the caller holds one of these. */
export function requireAnyOf(caller: Caller, permissions: readonly Permission[]): void {
  if (permissions.some((permission) => caller.permissions.includes(permission))) return;
  throw new RefusedError({ code: "permission_denied" });
}
