/** The audit log of provider configs, their secrets and issues: who changed what, and why. */
import { z } from "zod";
import * as bus from "../../../services/bus/messages/provider-events.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { moreOfAuditLog, moreOfAuditLogJson, pageOfAuditLogQuery } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
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
      description: "What changed, and the reason where the person gave one. It never contains a secret.",
      examples: [{ status: { from: "active", to: "disabled" }, reason: "The contract has ended." }],
    }),
  })
  .meta({ id: "ProviderEvent" });

const providerEventsSchema = z
  .object({
    events: z
      .array(providerEventSchema)
      .meta({ description: "By id, newest first; oldest first when the request has `since_id`." }),
    ...moreOfAuditLog,
  })
  .meta({ id: "ProviderEvents" });

/** `data` already uses the field names of the wire. */
function providerEventJson({ eventId, atMs, actor, ...event }: bus.ProviderEventEntry) {
  return { event_id: eventId, at: toTimestamp(atMs), actor: actorJson(actor), ...event };
}

const listProviderEvents: SessionHandler<undefined, z.infer<typeof pageOfAuditLogQuery>> = async (context) => {
  const { caller, deps, query } = context;
  const { search, since_id: sinceId, before_id: beforeId, limit } = query;
  const request = { caller, search, sinceId, beforeId, limit };
  const { events, throughId } = await deps.bus.call(bus.listProviderEvents, request);
  return ok({ events: events.map(providerEventJson), ...moreOfAuditLogJson(throughId) });
};

export const providerEventRoutes = [
  backofficeRoute({
    method: "GET",
    path: "/api/backoffice/v1/provider-events/",
    operation: "listProviderEvents",
    summary: "Read the audit log of payment providers and issues",
    description:
      "The audit log of provider configs, their secrets, attribution limits, issues and decisions about matches: who changed what, when and why. In older entries about an issue, the subject's kind is `provider_issue` and the action begins with `provider_issue_`. Changes of kill switches, including those of providers, are in the other audit log, `/api/backoffice/v1/events/`. Newest first. A program that polls with the last event's id as `since_id` misses no event.",
    query: pageOfAuditLogQuery,
    replies: { 200: { description: "By id.", schema: providerEventsSchema } },
    handler: listProviderEvents,
  }),
];
