/** The audit logs of places, devices, people and robotics, and the committed events of stations. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { repeatable } from "../operation.ts";
import { pageBefore, pageLimit, pageOfAuditLog } from "../page.ts";
import { actorSchema, callerSchema as caller, ROLES } from "./caller.ts";

const id = z.int().positive();
const data = z.record(z.string(), z.unknown());

export const REGISTRY_SUBJECTS = [
  "platform",
  "organization",
  "filial",
  "station",
  "device",
  "enrollment_code",
  "user",
  "session",
  "provider_config",
  "catalogue_item",
] as const;

/** One entry of the audit log: who did what to which thing, when. */
export const registryEventSchema = z.object({
  eventId: id,
  atMs: z.number(),
  actor: actorSchema,
  action: z.string(),
  /** The id is 0 for the platform. */
  subject: z.object({ kind: z.enum(REGISTRY_SUBJECTS), id: z.int().min(0) }),
  /** What has changed; never a secret. */
  data,
});
export type RegistryEventEntry = z.infer<typeof registryEventSchema>;

/**
 * Selects entries whose actor, action, subject or data contain the text, in upper or lower case. An underscore counts
 * as a space.
 */
export const auditLogSearch = { search: z.string().min(1).max(BOUNDS.searchCharacters).optional() };
/**
 * The event after which the next page begins; null when there is no next page. A search checks a limited number of
 * entries for one page, so a page may have few events, or none, although a later page has more.
 */
export const throughId = { throughId: id.nullable() };

/**
 * The registry's events of the caller's organization and of the platform. With `sinceId`: the later ones, oldest first.
 * Otherwise newest first, before `beforeId` if that is set. Needs `organization.manage`.
 */
export const listEvents = repeatable(
  "registry.listEvents",
  z.object({ caller, ...auditLogSearch, ...pageOfAuditLog }),
  z.object({ events: z.array(registryEventSchema), ...throughId }),
);

/** One event that a station has committed. The events of one commit have the same version. */
const auditEventSchema = z.object({
  stationId: id,
  version: id,
  ordinal: z.int(),
  atMs: z.number(),
  type: z.string(),
  actor: actorSchema,
  intentId: id.nullable(),
  data,
});
export type AuditEvent = z.infer<typeof auditEventSchema>;

/** A station's events by version, oldest first. A page ends with a whole commit. */
export const listStationEvents = repeatable(
  "audit.listStationEvents",
  z.object({ caller, stationId: id, sinceVersion: z.int().min(0), limit: pageLimit }),
  z.object({ events: z.array(auditEventSchema), hasMore: z.boolean() }),
);

/**
 * Who acts on robotics: a person (by role), a consumer, the registry (for the operator of the installation), or the
 * system.
 */
export const ROBOTICS_ACTOR_KINDS = [...ROLES, "robotics_consumer", "registry", "system"] as const;
export const ROBOTICS_SUBJECTS = ["robotics_consumer", "serving_task", "filial_robotics", "webhook_endpoint"] as const;

const roboticsAuditEntrySchema = z.object({
  eventId: id,
  atMs: z.number(),
  actor: z.object({ kind: z.enum(ROBOTICS_ACTOR_KINDS), id: z.int(), name: z.string() }),
  action: z.string(),
  subject: z.object({ kind: z.enum(ROBOTICS_SUBJECTS), id }),
  /** What changed and why; never a secret. */
  data,
});
export type RoboticsAuditEntry = z.infer<typeof roboticsAuditEntrySchema>;

/** The organization's entries, newest first. Needs `organization.manage`. */
export const listRoboticsEvents = repeatable(
  "robotics.listRoboticsEvents",
  z.object({ caller, ...auditLogSearch, ...pageBefore }),
  z.object({ events: z.array(roboticsAuditEntrySchema), ...throughId }),
);
