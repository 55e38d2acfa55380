/** Robotics consumers: the fleets that may work at a filial, and their credentials. */
import { z } from "zod";
import * as messages from "../../../services/bus/messages/consumers.ts";
import { creationHeaderSchema, creationOf } from "../../http/command-id.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery, queryId } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import { idSchema, nameSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { modeSchema } from "./provider-configs.ts";

const statusSchema = z.enum(messages.CONSUMER_STATUSES).meta({ id: "ConsumerStatus" });
const roboticsConsumerSchema = z
  .object({
    consumer_id: idSchema,
    filial_id: idSchema,
    name: z.string(),
    mode: modeSchema.meta({
      description: "Webhooks of a `test` consumer may go to this machine itself, where the operator allows that.",
    }),
    status: statusSchema.meta({
      description:
        "While a consumer is suspended, it reads nothing and receives no webhooks. Afterwards it finds the events of that time with `since_id`.",
    }),
    created_at: timestampSchema,
  })
  .meta({ id: "RoboticsConsumer" });
const roboticsConsumersSchema = z.object({
  robotics_consumers: z.array(roboticsConsumerSchema),
  has_more: hasMoreAfter,
});
const newRoboticsConsumerSchema = z
  .object({
    robotics_consumer: roboticsConsumerSchema,
    credential: z.string().meta({
      description: "The fleet sends it as a bearer token. No later answer shows it.",
      examples: ["rc_4yqDq0JmJcQ2yq5pT4pN7m0jv2rX2b8nq3a1sXw9c0E"],
    }),
  })
  .meta({ id: "NewRoboticsConsumer" });
const roboticsConsumersQuerySchema = z.strictObject({
  ...pageAfterQuery,
  filial_id: queryId().optional().meta({
    description:
      "Only robotics consumers of this filial, by its id in the list of filials; of all filials when left out.",
  }),
});
const createRoboticsConsumerBodySchema = z
  .strictObject({ filial_id: idSchema, name: nameSchema, mode: modeSchema })
  .meta({ id: "CreateRoboticsConsumer", examples: [{ filial_id: 42, name: "Ground floor fleet", mode: "live" }] });
const changeRoboticsConsumerBodySchema = z
  .strictObject({ name: nameSchema.optional(), status: statusSchema.optional() })
  .meta({ id: "ChangeRoboticsConsumer", examples: [{ status: "suspended" }] });

function roboticsConsumerJson(consumer: messages.Consumer): z.infer<typeof roboticsConsumerSchema> {
  return {
    consumer_id: consumer.consumerId,
    filial_id: consumer.filialId,
    name: consumer.name,
    mode: consumer.mode,
    status: consumer.status,
    created_at: toTimestamp(consumer.createdAtMs),
  };
}

const listRoboticsConsumers: SessionHandler<undefined, z.infer<typeof roboticsConsumersQuerySchema>> = async (
  context,
) => {
  const { caller, deps, query } = context;
  const { since_id: sinceId, limit, filial_id: filialId } = query;
  const request = { caller, filialId, sinceId, limit };
  const { consumers, hasMore } = await deps.bus.call(messages.listRoboticsConsumers, request);
  return ok({ robotics_consumers: consumers.map(roboticsConsumerJson), has_more: hasMore });
};

/** Refuses the filial of another organization with `not_found`. */
const createRoboticsConsumer: SessionHandler<z.infer<typeof createRoboticsConsumerBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { filial_id: filialId, name, mode } = body;
  const request = { caller, filialId, name, mode, creation: creationOf(context, "robotics_consumer") };
  const { consumer, credential } = await deps.bus.call(messages.createRoboticsConsumer, request);
  return created({ robotics_consumer: roboticsConsumerJson(consumer), credential });
};

const changeRoboticsConsumer: SessionHandler<z.infer<typeof changeRoboticsConsumerBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, consumerId: context.id("consumer_id"), ...body };
  const { consumer } = await deps.bus.call(messages.changeRoboticsConsumer, request);
  return ok(roboticsConsumerJson(consumer));
};

const resetRoboticsCredential: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const request = { caller, consumerId: context.id("consumer_id") };
  const { consumer, credential } = await deps.bus.call(messages.resetRoboticsCredential, request);
  return ok({ robotics_consumer: roboticsConsumerJson(consumer), credential });
};

const consumers = "/api/backoffice/v1/robotics-consumers/" as const;

export const roboticsConsumerRoutes = [
  backofficeRoute({
    method: "GET",
    path: consumers,
    operation: "listRoboticsConsumers",
    summary: "List the robotics consumers",
    description: "A consumer is a fleet at one filial.",
    query: roboticsConsumersQuerySchema,
    replies: { 200: { description: "By id.", schema: roboticsConsumersSchema } },
    handler: listRoboticsConsumers,
  }),
  backofficeRoute({
    method: "POST",
    path: consumers,
    operation: "createRoboticsConsumer",
    summary: "Create a robotics consumer",
    description: "Only this answer shows the credential; the service stores a hash of it.",
    headers: creationHeaderSchema,
    body: createRoboticsConsumerBodySchema,
    replies: { 201: { description: "The consumer and its credential.", schema: newRoboticsConsumerSchema } },
    errors: ["not_found", "conflict", "idempotency_key_reused", "already_created"],
    handler: createRoboticsConsumer,
  }),
  backofficeRoute({
    method: "PATCH",
    path: `${consumers}{consumer_id}/`,
    operation: "changeRoboticsConsumer",
    summary: "Rename, suspend or activate a robotics consumer",
    description:
      "After this answer, a suspended consumer cannot read anything; within a second, the service starts no further delivery to it. Its deliveries wait until the owner activates it, for as long as the service keeps deliveries; offers lapse. After the activation, the consumer can also read these events with `since_id`. Its offered and accepted tasks do not change; the owner can cancel them.",
    body: changeRoboticsConsumerBodySchema,
    replies: { 200: { description: "The consumer after the change.", schema: roboticsConsumerSchema } },
    errors: ["not_found"],
    handler: changeRoboticsConsumer,
  }),
  backofficeRoute({
    method: "POST",
    path: `${consumers}{consumer_id}/reset-credential/`,
    operation: "resetRoboticsCredential",
    summary: "Give a robotics consumer a new credential",
    description: "The old credential is invalid from this answer on.",
    replies: { 200: { description: "The consumer and its new credential.", schema: newRoboticsConsumerSchema } },
    errors: ["not_found"],
    handler: resetRoboticsCredential,
  }),
];
