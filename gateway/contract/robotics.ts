/** Serving tasks on the wire: what the owner offers and a fleet carries out, and who may. */
import { z } from "zod";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { ROBOTICS_ACTOR_KINDS, ROBOTICS_SUBJECTS } from "../../services/bus/messages/robotics.ts";
import { detailsSchema as detailsOnTheBus } from "../../services/bus/messages/sentence.ts";
import { modeSchema } from "../api/backoffice/provider-configs.ts";
import { consumerStatusSchema, servingTaskLegSchema, servingTaskStatusSchema } from "../http/enums.ts";
import { hasMoreAfter, hasMoreBefore, pageAfterQuery, pageBeforeQuery, queryId } from "../http/page.ts";
import { idSchema, nameSchema, reasonSchema, timestampSchema } from "../http/shared-schemas.ts";
import { LIMITS } from "../limits.ts";

/** Of what only needs a reason: to cancel, to pause, to resume. */
export const roboticsReasonBodySchema = z
  .strictObject({ reason: reasonSchema })
  .meta({ id: "RoboticsReason", examples: [{ reason: "A guest has fallen in the aisle." }] });

// Consumers.
export const roboticsConsumerSchema = z
  .object({
    consumer_id: idSchema,
    filial_id: idSchema,
    name: z.string(),
    mode: modeSchema.meta({
      description: "Webhooks of `test` ones may go to this machine itself, where the operator allows it.",
    }),
    status: consumerStatusSchema.meta({
      description:
        "A suspended one sees nothing and is sent nothing while it is; what happened meanwhile it finds with `since_id`.",
    }),
    created_at: timestampSchema,
  })
  .meta({ id: "RoboticsConsumer" });
export const roboticsConsumersSchema = z.object({
  robotics_consumers: z.array(roboticsConsumerSchema),
  has_more: hasMoreAfter,
});
export const newRoboticsConsumerSchema = z
  .object({
    robotics_consumer: roboticsConsumerSchema,
    credential: z.string().meta({
      description: "What the fleet sends as a bearer token; shown this once.",
      examples: ["rc_4yqDq0JmJcQ2yq5pT4pN7m0jv2rX2b8nq3a1sXw9c0E"],
    }),
  })
  .meta({ id: "NewRoboticsConsumer" });
export const roboticsConsumersQuerySchema = z.strictObject({
  ...pageAfterQuery,
  filial_id: queryId().optional(),
});
export const createRoboticsConsumerBodySchema = z
  .strictObject({ filial_id: idSchema, name: nameSchema, mode: modeSchema })
  .meta({ id: "CreateRoboticsConsumer", examples: [{ filial_id: 42, name: "Ground floor fleet", mode: "live" }] });
export const changeRoboticsConsumerBodySchema = z
  .strictObject({ name: nameSchema.optional(), status: consumerStatusSchema.optional() })
  .meta({ id: "ChangeRoboticsConsumer", examples: [{ status: "suspended" }] });

// Filials.
export const filialRoboticsSchema = z
  .object({
    filial_id: idSchema,
    paused: z
      .boolean()
      .meta({ description: "While it is, no task is offered or accepted; what is under way goes on." }),
    changed_at: timestampSchema.nullable().meta({ description: "Null while it was never paused." }),
    changed_by: z.string().nullable(),
    reason: z.string().nullable().meta({ description: "Of the last change." }),
  })
  .meta({ id: "FilialRobotics" });

// Tasks.
const manifestSchema = z
  .array(z.strictObject({ name: nameSchema, quantity: z.int().min(1).max(BOUNDS.lineQuantity) }))
  .min(1)
  .max(BOUNDS.orderLines)
  .meta({ description: "What is carried." });
const detailsSchema = detailsOnTheBus.meta({
  description:
    "What else there is to say of the place: up to 500 characters, on several lines where it needs them. Control characters other than line ends and marks that override the direction of text are refused.",
});
const taskFields = {
  task_id: idSchema,
  display_number: idSchema.meta({ description: "For people; without gaps at a filial." }),
  leg: servingTaskLegSchema,
  status: servingTaskStatusSchema,
  manifest: z.array(z.object({ name: z.string(), quantity: z.int().min(1) })).meta({ description: "What is carried." }),
  destination: z
    .object({ name: z.string(), details: z.string().nullable() })
    .meta({ description: "A table, a counter, or a guest's address on courier legs." }),
  offered_at: timestampSchema,
  expires_at: timestampSchema.meta({ description: "Until when the offer can be accepted." }),
  accepted_at: timestampSchema.nullable(),
  ended_at: timestampSchema.nullable(),
};
const taskExample = {
  task_id: 42,
  display_number: 7,
  leg: "kitchen_to_table",
  status: "offered",
  manifest: [{ name: "Soup of the day", quantity: 2 }],
  destination: { name: "Table 12", details: null },
  offered_at: "2026-11-20T12:00:00.000Z",
  expires_at: "2026-11-20T12:02:00.000Z",
  accepted_at: null,
  ended_at: null,
} as const;
/** As a fleet sees it. */
export const servingTaskSchema = z.object(taskFields).meta({ id: "ServingTask", examples: [taskExample] });
/** As the owner sees it. */
export const ownServingTaskSchema = z
  .object({
    ...taskFields,
    filial_id: idSchema,
    consumer_id: idSchema,
    cancel_reason: z.string().nullable(),
  })
  .meta({ id: "OwnServingTask" });

export const servingTasksSchema = z
  .object({
    serving_tasks: z.array(servingTaskSchema),
    has_more: hasMoreAfter,
    paused: z
      .boolean()
      .meta({ description: "Whether robotics is paused at the filial: what is offered cannot be accepted now." }),
  })
  .meta({ id: "ServingTasks", examples: [{ serving_tasks: [taskExample], has_more: false, paused: false }] });
export const servingTasksQuerySchema = z.strictObject({
  ...pageAfterQuery,
  status: servingTaskStatusSchema
    .optional()
    .meta({ description: "Left out: the current ones, which are offered or accepted." }),
});
export const ownServingTasksSchema = z.object({
  serving_tasks: z.array(ownServingTaskSchema),
  has_more: hasMoreBefore,
});
export const ownServingTasksQuerySchema = z.strictObject({
  ...pageBeforeQuery,
  filial_id: queryId().optional(),
  consumer_id: queryId().optional(),
  status: servingTaskStatusSchema.optional(),
});
const { min: leastMs, max: mostMs } = BOUNDS.offerLifetimeMs;
export const offerServingTaskBodySchema = z
  .strictObject({
    consumer_id: idSchema,
    leg: servingTaskLegSchema,
    manifest: manifestSchema,
    destination: z.strictObject({
      name: nameSchema,
      details: detailsSchema.optional(),
    }),
    valid_for_seconds: z
      .int()
      .min(leastMs / 1_000)
      .max(mostMs / 1_000)
      .default(LIMITS.offerUnlessAskedSeconds)
      .meta({ description: "How long the offer can be accepted; two minutes when left out." }),
  })
  .meta({
    id: "OfferServingTask",
    examples: [
      {
        consumer_id: 42,
        leg: "kitchen_to_table",
        manifest: [{ name: "Soup of the day", quantity: 2 }],
        destination: { name: "Table 12" },
        valid_for_seconds: 120,
      },
    ],
  });

/** A weak entity tag over the whole answer, as polls have it. */
export const taskConditionHeaderSchema = z.object({
  "If-None-Match": z
    .string()
    .optional()
    .meta({ description: "The last ETag; lists and `*` work.", examples: ['W/"mJ0iXf3lM9vT2bQwZr5K"'] }),
});
export const taskEtagHeaderSchema = z.object({ ETag: z.string().meta({ description: "Weak; of the whole answer." }) });

// The trail.
const WIRE_ACTOR_KINDS = ROBOTICS_ACTOR_KINDS.map((kind) => (kind === "registry" ? ("platform" as const) : kind));
export const roboticsEventSchema = z
  .object({
    event_id: idSchema,
    at: timestampSchema,
    actor: z.object({
      kind: z.enum(WIRE_ACTOR_KINDS).meta({
        id: "RoboticsActorKind",
        description:
          "A person's role; `platform` is whoever operates the installation, `system` a deadline or a target's end.",
      }),
      id: z.int().meta({ description: "Of the person or the consumer; 0 for the others." }),
      name: z.string(),
    }),
    action: z.string().meta({ examples: ["serving_task_cancelled"] }),
    subject: z.object({ kind: z.enum(ROBOTICS_SUBJECTS).meta({ id: "RoboticsSubjectKind" }), id: idSchema }),
    data: z.record(z.string(), z.unknown()).meta({ description: "What changed and why; never a secret." }),
  })
  .meta({ id: "RoboticsEvent" });
export const roboticsEventsSchema = z.object({
  events: z.array(roboticsEventSchema).meta({ description: "By id, newest first." }),
  has_more: hasMoreBefore,
});
export const roboticsEventsQuerySchema = z.strictObject(pageBeforeQuery);
