/** The audit log of provider configs, issues and statement lines. Needs `organization.manage`. */
import { z } from "zod";
import { repeatable } from "../operation.ts";
import { pageOfAuditLog } from "../page.ts";
import { actorSchema, callerSchema as caller } from "./caller.ts";
import { auditLogSearch, throughId } from "./events.ts";

const id = z.int().positive();

/** `provider_issue` is the older name of `issue`, from before runs raised issues. */
export const PROVIDER_EVENT_SUBJECTS = [
  "provider_config",
  "provider_issue",
  "issue",
  "statement_line",
  "organization",
] as const;

/** One entry of the audit log of provider configs and issues; never a secret. */
export const providerEventSchema = z.object({
  eventId: id,
  atMs: z.number(),
  actor: actorSchema,
  action: z.string(),
  subject: z.object({ kind: z.enum(PROVIDER_EVENT_SUBJECTS), id }),
  data: z.record(z.string(), z.unknown()),
});
export type ProviderEventEntry = z.infer<typeof providerEventSchema>;

/**
 * Oldest first after `sinceId`; without it newest first, before `beforeId` if that is given. A new event never
 * has a lower id than an event that was already read.
 */
export const listProviderEvents = repeatable(
  "providers.listProviderEvents",
  z.object({ caller, ...auditLogSearch, ...pageOfAuditLog }),
  z.object({ events: z.array(providerEventSchema), ...throughId }),
);
