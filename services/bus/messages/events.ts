/** The audit log of places, devices, people, sessions and kill switches, for the owner. */
import { z } from "zod";
import { defineOperation } from "../operation.ts";
import { pageAfter, pageBefore } from "../page.ts";
import { actorSchema, callerSchema as caller } from "./caller.ts";

const id = z.int().positive();

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
] as const;

/** One entry of the audit log: who did what to which thing, when. */
export const registryEventSchema = z.object({
  eventId: id,
  atMs: z.number(),
  actor: actorSchema,
  action: z.string(),
  /** The id is 0 for the platform. */
  subject: z.object({ kind: z.enum(REGISTRY_SUBJECTS), id: z.int().min(0) }),
  /** What changed; never a secret. */
  data: z.record(z.string(), z.unknown()),
});
export type RegistryEventEntry = z.infer<typeof registryEventSchema>;

/**
 * The registry's events of the caller's organization, and those of the platform: oldest first after `sinceId`; without
 * it newest first, before `beforeId` if that is given. Needs `organization.manage`.
 */
export const listEvents = defineOperation(
  "registry.listEvents",
  "repeatable",
  z.object({ caller, ...pageAfter, ...pageBefore }),
  z.object({ events: z.array(registryEventSchema), hasMore: z.boolean() }),
);
