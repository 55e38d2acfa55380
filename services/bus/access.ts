/** Who may do what here. The organization is checked by each query. */
import type { Caller, Permission } from "./messages/caller.ts";
import { RefusedError } from "./refusals.ts";

/** Throws `permission_denied` unless the caller holds one of these. */
export function requirePermission(caller: Caller, ...anyOf: readonly Permission[]): void {
  if (anyOf.some((permission) => caller.permissions.includes(permission))) return;
  throw new RefusedError({ code: "permission_denied" });
}
