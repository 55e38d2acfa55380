/** The audit log of provider configs, their secrets and issues: who changed what, and why. */
import { z } from "zod";
import * as bus from "../../../services/bus/messages/provider-configs.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreOfAuditLog, pageOfAuditLogQuery } from "../../http/page.ts";
import { type Route, route, session } from "../../http/route.ts";
import { actorJson, idSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { actorSchema } from "./events.ts";

const providerEventSchema = z
  .object({
    event_id: idSchema,
    at: timestampSchema,
    actor: actorSchema,
    action: z.string().meta({ examples: ["provider_config_changed"] }),
    subject: z.object({
      kind: z.enum(bus.PROVIDER_EVENT_SUBJECTS).meta({ id: "ProviderEventSubjectKind" }),
      id: idSchema,
    }),
    data: z.record(z.string(), z.unknown()).meta({
      description: "What changed and, where it was said, why; never a secret.",
      examples: [{ status: { from: "active", to: "disabled" }, reason: "The contract has ended." }],
    }),
  })
  .meta({ id: "ProviderEvent" });

const providerEventsSchema = z
  .object({
    events: z
      .array(providerEventSchema)
      .meta({ description: "By id, newest first; oldest first when `since_id` was given." }),
    has_more: hasMoreOfAuditLog,
  })
  .meta({ id: "ProviderEvents" });

/** An event's data has the names of the wire already. */
function providerEventJson({ eventId, atMs, actor, ...event }: bus.ProviderEventEntry) {
  return { event_id: eventId, at: toTimestamp(atMs), actor: actorJson(actor), ...event };
}

const listProviderEvents: SessionHandler<undefined, z.infer<typeof pageOfAuditLogQuery>> = async (context) => {
  const { caller, deps, query } = context;
  const { since_id: sinceId, before_id: beforeId, limit } = query;
  const { events, hasMore } = await deps.bus.call(bus.listProviderEvents, { caller, sinceId, beforeId, limit });
  return ok({ events: events.map(providerEventJson), has_more: hasMore });
};

export const providerEventRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/api/backoffice/v1/provider-events/",
    operation: "listProviderEvents",
    tag: "backoffice",
    summary: "Read who changed a payment provider, or settled money that does not fit",
    description:
      "The audit log of provider configs, their secrets, and issues: who added, changed or rotated one, and who assigned, commented, attributed or closed which issue, with the reason. The subject of an older entry about an issue is `provider_issue`, and its action begins so. Kill switches, those of providers as well, are in the other audit log, `/api/backoffice/v1/events/`. Newest first; a program that follows it asks with the last event's id as `since_id`, and misses none.",
    who: session("organization.manage"),
    query: pageOfAuditLogQuery,
    replies: { 200: { description: "By id.", schema: providerEventsSchema } },
    errors: [],
    handler: listProviderEvents,
  }),
];
