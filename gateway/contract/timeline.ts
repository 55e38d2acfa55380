/** What happened, who did it, and whether money moved: the registry's events, a station's events and one payment's timeline. */

import { z } from "zod";
import { ACTOR_KINDS } from "../../services/bus/messages/caller.ts";
import { REGISTRY_SUBJECTS } from "../../services/bus/messages/events.ts";
import { intentStatusSchema } from "../api/cashier/intent-json.ts";
import { moneyMovedSchema } from "../http/enums.ts";
import { hasMoreAfterVersion, hasMoreOfTrail, pageAfterVersionQuery } from "../http/page.ts";
import { idSchema, timestampSchema } from "../http/shared-schemas.ts";

const WIRE_ACTOR_KINDS = ACTOR_KINDS.map((kind) => (kind === "registry" ? ("platform" as const) : kind));

/** Who caused it, in every trail. */
export const actorSchema = z
  .object({
    kind: z.enum(WIRE_ACTOR_KINDS).meta({
      id: "ActorKind",
      description:
        "A person's role, or `device`; `platform` is whoever operates the installation, `settlement` the payment seam, `provider` a payment provider, `system` a deadline, a recovery or the liveness feed.",
      examples: ["cashier"],
    }),
    id: z
      .int()
      .min(0)
      .meta({ description: "A person's, a device's or, of a provider, its config's; 0 for the others." }),
    name: z.string().meta({ description: "As it was at that moment; of the platform, who said that it was them." }),
  })
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
    has_more: hasMoreAfterVersion,
  })
  .meta({ id: "StationEvents" });

export const stationEventsQuerySchema = z.strictObject(pageAfterVersionQuery);

/** One thing that a person or a device changed: places, devices, codes, people, sessions and kill switches. */
export const registryEventSchema = z
  .object({
    event_id: idSchema,
    at: timestampSchema,
    actor: actorSchema,
    action: z.string().meta({ examples: ["device_suspended"] }),
    subject: z.object({
      kind: z.enum(REGISTRY_SUBJECTS).meta({ id: "RegistrySubjectKind" }),
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
    has_more: hasMoreOfTrail,
  })
  .meta({ id: "RegistryEvents" });

export const timelineSchema = z
  .object({
    intent_id: idSchema,
    station_id: idSchema,
    status: intentStatusSchema,
    summary: z.string().meta({ description: "The whole payment in one sentence." }),
    money_moved: moneyMovedSchema,
    entries: z
      .array(
        z.object({
          at: timestampSchema,
          type: z.string(),
          actor: actorSchema,
          sentence: z.string(),
          money_moved: moneyMovedSchema,
          data: dataSchema,
        }),
      )
      .meta({
        description:
          "The creation first, then in the order of time: the payment's own steps, kill switches that were thrown while it was under way (`platform_frozen` and the like; one that held already stands directly behind the creation, with its own time), what an operator attributed of its money (`provider_issue_attributed`, whose `attribution_intent_id` is the payment that tells the rest), and which of its issues were closed as dealt with (`provider_issue_closed`, with who and why).",
      }),
  })
  .meta({ id: "PaymentTimeline" });
