/** What happened, who did it, and whether money moved: the registry's events, a station's events and one payment's timeline. */
import { z } from "zod";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { REGISTRY_ACTORS, REGISTRY_SUBJECTS } from "../../services/bus/messages/registry.ts";
import { LIMITS } from "../limits.ts";
import { INTENT_STATUSES } from "./intent.ts";
import { idSchema, timestampSchema } from "./shared.ts";

/** Who caused it; `system` is a deadline, a recovery or the liveness feed. */
export const actorSchema = z
  .object({ kind: z.string().meta({ examples: ["cashier"] }), id: z.int(), name: z.string() })
  .meta({ id: "Actor" });

const dataSchema = z
  .record(z.string(), z.unknown())
  .meta({ description: "The event's own facts; amounts are decimal strings, times ISO 8601." });

/** One thing that a station committed. Two events of one commit share its version. */
export const stationEventSchema = z
  .object({
    version: idSchema,
    ordinal: z.int().min(0),
    at: timestampSchema,
    type: z.string().meta({ examples: ["intent_created"] }),
    actor: actorSchema,
    intent_id: idSchema.nullable(),
    data: dataSchema,
  })
  .meta({ id: "StationEvent" });

export const stationEventsSchema = z
  .object({
    events: z.array(stationEventSchema).meta({ description: "In the order in which they were committed." }),
    has_more: z.boolean().meta({ description: "Ask again with the last event's version as `since_version`." }),
  })
  .meta({ id: "StationEvents" });

export const stationEventsQuerySchema = z.strictObject({
  since_version: z.coerce.number().int().min(0).default(0).meta({ description: "Events after this version." }),
  limit: z.coerce.number().int().min(1).max(BOUNDS.listedEvents).default(LIMITS.eventsUnlessAsked),
});

/** One thing that a person or a device changed: places, devices, codes, people and sessions. */
export const registryEventSchema = z
  .object({
    event_id: idSchema,
    at: timestampSchema,
    actor: z.object({
      kind: z.enum(REGISTRY_ACTORS),
      id: z.int().min(0).meta({ description: "A user's or a device's; 0 for whoever operates the installation." }),
      name: z.string().meta({ description: "As it was at that moment." }),
    }),
    action: z.string().meta({ examples: ["device_suspended"] }),
    subject: z.object({ kind: z.enum(REGISTRY_SUBJECTS), id: idSchema }),
    data: z
      .record(z.string(), z.unknown())
      .meta({ description: "What changed; never a secret.", examples: [{ from: "active", to: "suspended" }] }),
  })
  .meta({ id: "RegistryEvent" });

export const registryEventsSchema = z
  .object({
    events: z.array(registryEventSchema).meta({ description: "By id, oldest first." }),
    has_more: z.boolean().meta({
      description: "Ask again with the last event's id as `since_id`; a page may be shorter than `limit`.",
    }),
  })
  .meta({ id: "RegistryEvents" });

export const registryEventsQuerySchema = z.strictObject({
  since_id: z.coerce.number().int().min(0).default(0).meta({ description: "Events after this one." }),
  limit: z.coerce.number().int().min(1).max(BOUNDS.listedEvents).default(LIMITS.eventsUnlessAsked),
});

export const MONEY_MOVED = ["no", "yes", "maybe"] as const;

export const timelineSchema = z
  .object({
    intent_id: idSchema,
    station_id: idSchema,
    status: z.enum(INTENT_STATUSES),
    summary: z.string().meta({ description: "The whole payment in one sentence." }),
    money_moved: z.enum(MONEY_MOVED).meta({ description: "`maybe` where only evidence says so." }),
    entries: z.array(
      z.object({
        at: timestampSchema,
        type: z.string(),
        actor: actorSchema,
        sentence: z.string(),
        money_moved: z.enum(MONEY_MOVED),
        data: dataSchema,
      }),
    ),
  })
  .meta({ id: "PaymentTimeline" });
