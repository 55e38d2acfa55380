/**
 * The caller of an operation. The gateway reads it from a session. The services check permission and organization, too.
 */
import { z } from "zod";
import { RefusedError } from "../refusals.ts";

export const ROLES = ["owner", "cashier", "reconciliation_operator"] as const;
export const roleSchema = z.enum(ROLES);
export type Role = z.infer<typeof roleSchema>;

/** What a role may do. Handlers check a permission, never the role. */
export const PERMISSIONS = ["organization.manage", "payments.collect", "reconciliation.manage"] as const;
export const permissionSchema = z.enum(PERMISSIONS);
export type Permission = z.infer<typeof permissionSchema>;

/**
 * The actors in all audit logs: a person (by role), a device, the registry (for the operator of the installation), the
 * payment seam, a payment provider, or the system (a deadline, a recovery, the liveness feed).
 */
export const ACTOR_KINDS = [...ROLES, "device", "registry", "settlement", "provider", "system"] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];
/** The id of a person, a device or a provider config; zero for other actors. The name is the one at that time. */
export const actorSchema = z.object({ kind: z.enum(ACTOR_KINDS), id: z.int(), name: z.string() });

export const callerSchema = z.object({
  userId: z.int().positive(),
  name: z.string(),
  organizationId: z.int().positive(),
  role: roleSchema,
  permissions: z.array(permissionSchema),
});
export type Caller = z.infer<typeof callerSchema>;

/** A person as an actor of an audit log: the kind is the role. */
export const personActor = ({ role, userId, name }: Pick<Caller, "role" | "userId" | "name">) => ({
  kind: role,
  id: userId,
  name,
});
/** The operator of the installation, who acts on the bus only. Station logs and tables name the registry. */
export const OPERATOR = { kind: "registry" as const, id: 0, name: "operator" };

/** An entry of the CREDENTIALS bucket; the key is the device credential's SHA-256 in hex. */
export const credentialEntrySchema = z.object({
  deviceId: z.int().positive(),
  stationId: z.int().positive(),
  scopes: z.array(z.string()),
});
export type CredentialEntry = z.infer<typeof credentialEntrySchema>;

/**
 * The positions that the replicas must reach before a change is effective and the caller's next read certainly shows
 * it. Before it answers, the gateway waits for them for a limited time. The answer shows when the change is not
 * effective yet.
 */
export const barrierSchema = z.object({
  /** By stream name: the sequence that its replica must reach. */
  positions: z.record(z.string(), z.number()),
  /** The relay has not delivered the change in time. It is stored, and takes effect when the relay delivers it. */
  isUndelivered: z.literal(true).optional(),
});
export type Barrier = z.infer<typeof barrierSchema>;

/**
 * Returns the caller; throws `permission_denied` unless it has one of these permissions. Each query checks the
 * organization.
 */
export function requirePermission(caller: Caller, ...anyOf: readonly Permission[]): Caller {
  if (anyOf.some((permission) => caller.permissions.includes(permission))) return caller;
  throw new RefusedError({ code: "permission_denied" });
}
