/** The audit log in the owner's API: the commits of stations, and the changes by people and devices. */
import { z } from "zod";
import { formatAmount } from "../../../machines/currency.ts";
import { ACTOR_KINDS } from "../../../services/bus/messages/caller.ts";
import * as messages from "../../../services/bus/messages/events.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { ownStation } from "../../http/own-station.ts";
import {
  hasMoreAfterVersion,
  moreOfAuditLog,
  moreOfAuditLogJson,
  pageAfterVersionQuery,
  pageBeforeOfAuditLog,
  pageOfAuditLogQuery,
} from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import { actorJson, idSchema, snakeCase, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";

/** The API shows the actor `registry` of logs and tables as `platform`. */
const publicKinds = <const TKind extends string>(kinds: readonly TKind[]) =>
  kinds.map((kind) => (kind === "registry" ? ("platform" as const) : (kind as Exclude<TKind, "registry">)));

/** The actor of an event. */
export const actorSchema = z
  .object({
    kind: z.enum(publicKinds(ACTOR_KINDS)).meta({
      id: "ActorKind",
      description:
        "A person's role, or `device`. `platform` is the operator of the installation, `settlement` is the payment seam, `provider` is a payment provider, and `system` is a deadline, a recovery or the liveness feed.",
      examples: ["cashier"],
    }),
    id: z
      .int()
      .min(0)
      .meta({ description: "The id of the person, the device or the provider config; 0 for the others." }),
    name: z.string().meta({
      description: "The name at that moment. For the platform: the name that the operator gave with the request.",
    }),
  })
  .meta({ id: "Actor" });

export const eventDataSchema = z
  .record(z.string(), z.unknown())
  .meta({ description: "The fields of the event. Amounts are decimal strings; times are ISO 8601." });

/** One event of a station. Two events of one commit share its version. */
const stationEventSchema = z
  .object({
    version: idSchema,
    ordinal: z.int().min(0),
    at: timestampSchema,
    type: z.string().meta({ examples: ["intent_created"] }),
    actor: actorSchema,
    intent_id: idSchema.nullable(),
    data: eventDataSchema,
  })
  .meta({ id: "StationEvent" });
export const stationEventsSchema = z
  .object({
    events: z.array(stationEventSchema).meta({ description: "In the order in which they were committed." }),
    has_more: hasMoreAfterVersion,
  })
  .meta({ id: "StationEvents" });
const stationEventsQuerySchema = z.strictObject(pageAfterVersionQuery);

/** One change by a person or a device: places, devices, codes, people, sessions and kill switches. */
const registryEventSchema = z
  .object({
    event_id: idSchema,
    at: timestampSchema,
    actor: actorSchema,
    action: z.string().meta({ examples: ["device_suspended"] }),
    subject: z.object({
      kind: z.enum(messages.REGISTRY_SUBJECTS).meta({ id: "RegistrySubjectKind" }),
      id: z
        .int()
        .min(0)
        .meta({ description: "0 for the platform.", examples: [42] }),
    }),
    data: z
      .record(z.string(), z.unknown())
      .meta({ description: "What changed; never a secret.", examples: [{ from: "active", to: "suspended" }] }),
  })
  .meta({ id: "RegistryEvent" });
export const registryEventsSchema = z
  .object({
    events: z
      .array(registryEventSchema)
      .meta({ description: "By id, newest first; oldest first when `since_id` was given." }),
    ...moreOfAuditLog,
  })
  .meta({ id: "RegistryEvents" });

/** One action of a person, a consumer or the system about robotics. */
const roboticsEventSchema = z
  .object({
    event_id: idSchema,
    at: timestampSchema,
    actor: z.object({
      kind: z.enum(publicKinds(messages.ROBOTICS_ACTOR_KINDS)).meta({
        id: "RoboticsActorKind",
        description:
          "A person's role; `platform` is the operator of the installation, `system` a deadline or a target's end.",
      }),
      id: z.int().meta({ description: "The id of the person or the consumer; 0 for the others." }),
      name: z.string(),
    }),
    action: z.string().meta({ examples: ["serving_task_cancelled"] }),
    subject: z.object({ kind: z.enum(messages.ROBOTICS_SUBJECTS).meta({ id: "RoboticsSubjectKind" }), id: idSchema }),
    data: z.record(z.string(), z.unknown()).meta({ description: "What changed and why; never a secret." }),
  })
  .meta({ id: "RoboticsEvent" });
const roboticsEventsSchema = z.object({
  events: z.array(roboticsEventSchema).meta({ description: "By id, newest first." }),
  ...moreOfAuditLog,
});
const roboticsEventsQuerySchema = z.strictObject(pageBeforeOfAuditLog);

function stationEventJson(event: messages.AuditEvent): z.infer<typeof stationEventSchema> {
  const { version, ordinal, atMs, type, actor, intentId, data } = event;
  return {
    version,
    ordinal,
    at: toTimestamp(atMs),
    type,
    actor: actorJson(actor),
    intent_id: intentId,
    data: eventDataJson(data),
  };
}

/**
 * An event's data in JSON. The field names show what a value is (`…Ms` is a moment, `amountMinor` an amount), so this function
 * also works for the events of later versions.
 */
export function eventDataJson(data: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const currency = data["currency"];
  const entries = Object.entries(data)
    .filter(([key]) => key !== "type")
    .map(([key, value]): [string, unknown] => {
      if (key.endsWith("Ms") && typeof value === "number") return [snakeCase(key.slice(0, -2)), toTimestamp(value)];
      if (key.endsWith("Minor") && typeof value === "string" && typeof currency === "string")
        return [snakeCase(key.slice(0, -5)), formatAmount(value, currency)];
      return [snakeCase(key), isRecord(value) ? eventDataJson(value) : value];
    });
  return Object.fromEntries(entries);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The entry's data already has the field names of the wire. */
function entryJson({
  eventId,
  atMs,
  actor,
  action,
  subject,
  data,
}: messages.RegistryEventEntry | messages.RoboticsAuditEntry) {
  return {
    event_id: eventId,
    at: toTimestamp(atMs),
    actor: actorJson<{ readonly kind: string }>(actor),
    action,
    subject,
    data,
  };
}

const listStationEvents: SessionHandler<undefined, z.infer<typeof stationEventsQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { stationId } = await ownStation(context);
  const { since_version: sinceVersion, limit } = query;
  const request = { caller, stationId, sinceVersion, limit };
  const { events, hasMore } = await deps.bus.call(messages.listStationEvents, request);
  return ok({ events: events.map(stationEventJson), has_more: hasMore });
};

const listEvents: SessionHandler<undefined, z.infer<typeof pageOfAuditLogQuery>> = async ({ caller, deps, query }) => {
  const { search, since_id: sinceId, before_id: beforeId, limit } = query;
  const { events, throughId } = await deps.bus.call(messages.listEvents, { caller, search, sinceId, beforeId, limit });
  return ok({ events: events.map(entryJson), ...moreOfAuditLogJson(throughId) });
};

const listRoboticsEvents: SessionHandler<undefined, z.infer<typeof roboticsEventsQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { search, before_id: beforeId, limit } = query;
  const { events, throughId } = await deps.bus.call(messages.listRoboticsEvents, { caller, search, beforeId, limit });
  return ok({ events: events.map(entryJson), ...moreOfAuditLogJson(throughId) });
};

const root = "/api/backoffice/v1";

export const eventRoutes = [
  backofficeRoute({
    method: "GET",
    path: `${root}/stations/{station_id}/events/`,
    operation: "listStationEvents",
    summary: "Read what a station committed",
    description:
      "All events of the station, in the order of its commits. To follow the station, repeat the request with the last event's version as `since_version`.",
    query: stationEventsQuerySchema,
    replies: { 200: { description: "In order.", schema: stationEventsSchema } },
    errors: ["not_found"],
    handler: listStationEvents,
  }),
  backofficeRoute({
    method: "GET",
    path: `${root}/events/`,
    operation: "listEvents",
    summary: "Read who changed what",
    description:
      "The audit log of places, devices, enrollment codes, people, sessions and kill switches, including the platform's kill switch. Newest first. A program that polls with the last event's id as `since_id` misses no event.",
    query: pageOfAuditLogQuery,
    replies: { 200: { description: "By id.", schema: registryEventsSchema } },
    handler: listEvents,
  }),
  backofficeRoute({
    method: "GET",
    path: `${root}/robotics-events/`,
    operation: "listRoboticsEvents",
    summary: "Read the audit log of robotics",
    description:
      "The audit log of consumers, serving tasks, pauses and webhook endpoints: who did what, when and why. Without `before_id`, the newest events.",
    query: roboticsEventsQuerySchema,
    replies: { 200: { description: "Newest first.", schema: roboticsEventsSchema } },
    handler: listRoboticsEvents,
  }),
];
