/**
 * Robotics consumers: the fleets that carry out serving tasks at a filial. The owner's operations need
 * `organization.manage`. An id of another organization gets `not_found`.
 */
import { z } from "zod";
import { once, repeatable } from "../operation.ts";
import { pageAfter } from "../page.ts";
import { callerSchema as caller } from "./caller.ts";
import { creationSchema as creation } from "./creation.ts";
import { nameSchema as name } from "./name.ts";

const id = z.int().positive();
/** SHA-256 in lower-case hex. */
const credentialHash = z.string().regex(/^[0-9a-f]{64}$/);

/** `test` consumers are for development: only their webhooks may have a loopback address as their target. */
export const CONSUMER_MODES = ["test", "live"] as const;
export const CONSUMER_STATUSES = ["active", "suspended"] as const;

const consumerSchema = z.object({
  consumerId: id,
  filialId: id,
  name: z.string(),
  mode: z.enum(CONSUMER_MODES),
  status: z.enum(CONSUMER_STATUSES),
  createdAtMs: z.number(),
});
export type Consumer = z.infer<typeof consumerSchema>;

export const listRoboticsConsumers = repeatable(
  "robotics.listRoboticsConsumers",
  z.object({ caller, filialId: id.optional(), ...pageAfter }),
  z.object({ consumers: z.array(consumerSchema), hasMore: z.boolean() }),
);
/** The reply has the credential. No later read returns it, because the service stores only its SHA-256. */
export const createRoboticsConsumer = once(
  "robotics.createRoboticsConsumer",
  z.object({ caller, filialId: id, name, mode: z.enum(CONSUMER_MODES), creation: creation.optional() }),
  z.object({ consumer: consumerSchema, credential: z.string() }),
);
export const changeRoboticsConsumer = once(
  "robotics.changeRoboticsConsumer",
  z.object({ caller, consumerId: id, name: name.optional(), status: z.enum(CONSUMER_STATUSES).optional() }),
  z.object({ consumer: consumerSchema }),
);
/** Replaces the credential. The service no longer accepts the old one. */
export const resetRoboticsCredential = once(
  "robotics.resetRoboticsCredential",
  z.object({ caller, consumerId: id }),
  z.object({ consumer: consumerSchema, credential: z.string() }),
);

/** The consumer to which the credential of a request belongs. */
export const consumerCallerSchema = z.object({
  consumerId: id,
  name: z.string(),
  organizationId: id,
  filialId: id,
  mode: z.enum(CONSUMER_MODES),
});
export type ConsumerCaller = z.infer<typeof consumerCallerSchema>;
/**
 * Finds the consumer of a credential. The gateway calls this for every request (contract, "Webhook-related read and replay
 * endpoints"). `consumer` is null for an unknown credential; it is null with `suspended: true` for a suspended consumer.
 */
export const authenticateConsumer = repeatable(
  "robotics.authenticateConsumer",
  z.object({ credentialHash }),
  z.object({ consumer: consumerCallerSchema.nullable(), suspended: z.boolean().optional() }),
);

/** Creates the sandbox's test consumer if it does not exist. Stores this hash as the hash of its credential. */
export const seedSandboxConsumer = repeatable(
  "robotics.seedSandboxConsumer",
  z.object({ organizationId: id, filialId: id, credentialHash }),
  z.object({ consumerId: id }),
);
