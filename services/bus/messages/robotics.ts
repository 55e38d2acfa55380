/**
 * Serving tasks for robots, and the consumers (fleets) that carry them out. The owner offers and cancels, pauses and
 * resumes; a consumer reads, accepts and completes. Lists come in pages; a foreign id is `not_found`.
 */
import { z } from "zod";
import { SERVING_TASK_STATUSES, TASK_LEGS } from "../../../machines/serving-task.ts";
import { BOUNDS } from "../bounds.ts";
import { defineOperation } from "../operation.ts";
import { pageAfter, pageBefore } from "../page.ts";
import { callerSchema, ROLES } from "./caller.ts";
import { nameSchema as name } from "./name.ts";
import { detailsSchema, reasonSchema as reason } from "./sentence.ts";

const id = z.int().positive();
const caller = callerSchema;
const hasMore = z.boolean();
const credentialHash = z.string().regex(/^[0-9a-f]{64}$/);

/** `test` consumers are for development; only their webhooks may ever go to a loopback address. */
export const CONSUMER_MODES = ["test", "live"] as const;
export const CONSUMER_STATUSES = ["active", "suspended"] as const;

export const consumerSchema = z.object({
  consumerId: id,
  filialId: id,
  name: z.string(),
  mode: z.enum(CONSUMER_MODES),
  status: z.enum(CONSUMER_STATUSES),
  createdAtMs: z.number(),
});
export type Consumer = z.infer<typeof consumerSchema>;

/** One thing to carry: what it is, how many. */
const manifestLineSchema = z.object({ name, quantity: z.int().min(1).max(BOUNDS.lineQuantity) });
/** Where to: a table, a counter, a guest's address on courier legs. It never leaves by webhook. */
const destinationSchema = z.object({ name, details: detailsSchema.optional() });

export const servingTaskSchema = z.object({
  taskId: id,
  displayNumber: id,
  filialId: id,
  consumerId: id,
  leg: z.enum(TASK_LEGS),
  status: z.enum(SERVING_TASK_STATUSES),
  // As they were written: what is stored is shown, whatever later rules would say of it.
  manifest: z.array(z.object({ name: z.string(), quantity: z.int() })),
  destination: z.object({ name: z.string(), details: z.string().optional() }),
  offeredAtMs: z.number(),
  /** Until when the offer may be accepted. */
  expiresAtMs: z.number(),
  acceptedAtMs: z.number().nullable(),
  endedAtMs: z.number().nullable(),
  /** Why the owner cancelled it. */
  cancelReason: z.string().nullable(),
});
export type ServingTask = z.infer<typeof servingTaskSchema>;
const taskReply = z.object({ task: servingTaskSchema });

// The owner's. Each needs `organization.manage`.
export const listConsumers = defineOperation(
  "robotics.consumer.list",
  "repeatable",
  z.object({ caller, filialId: id.optional(), ...pageAfter }),
  z.object({ consumers: z.array(consumerSchema), hasMore }),
);
/** The credential is returned this once; only its SHA-256 is stored. */
export const createConsumer = defineOperation(
  "robotics.consumer.create",
  "once",
  z.object({ caller, filialId: id, name, mode: z.enum(CONSUMER_MODES) }),
  z.object({ consumer: consumerSchema, credential: z.string() }),
);
export const changeConsumer = defineOperation(
  "robotics.consumer.change",
  "once",
  z.object({ caller, consumerId: id, name: name.optional(), status: z.enum(CONSUMER_STATUSES).optional() }),
  z.object({ consumer: consumerSchema }),
);
/** A new credential; the old one ends with this. */
export const resetConsumerCredential = defineOperation(
  "robotics.consumer.reset_credential",
  "once",
  z.object({ caller, consumerId: id }),
  z.object({ consumer: consumerSchema, credential: z.string() }),
);
/**
 * Offers a task to a consumer. With a key, a repetition returns the task that the first one made; another request under
 * it is `idempotency_key_reused`. Refusals: `robotics_paused`, `conflict` (a suspended consumer), `busy` (too many open).
 */
export const offerTask = defineOperation(
  "robotics.task.offer",
  "repeatable_with_key",
  z.object({
    caller,
    consumerId: id,
    leg: z.enum(TASK_LEGS),
    manifest: z.array(manifestLineSchema).min(1).max(BOUNDS.orderLines),
    destination: destinationSchema,
    validForMs: z.int().min(BOUNDS.offerLifetimeMs.min).max(BOUNDS.offerLifetimeMs.max),
    idempotencyKey: z.string().max(BOUNDS.idempotencyKeyCharacters).optional(),
  }),
  taskReply,
);
/** Refused with `task_not_actionable` once it has ended; cancelling a cancelled one again changes nothing. */
export const cancelTask = defineOperation(
  "robotics.task.cancel",
  "repeatable",
  z.object({ caller, taskId: id, reason }),
  taskReply,
);
/** Newest first. */
export const listOwnTasks = defineOperation(
  "robotics.task.list_own",
  "repeatable",
  z.object({
    caller,
    filialId: id.optional(),
    consumerId: id.optional(),
    status: z.enum(SERVING_TASK_STATUSES).optional(),
    ...pageBefore,
  }),
  z.object({ tasks: z.array(servingTaskSchema), hasMore }),
);
export const getOwnTask = defineOperation(
  "robotics.task.get_own",
  "repeatable",
  z.object({ caller, taskId: id }),
  taskReply,
);

export const filialRoboticsSchema = z.object({
  filialId: id,
  paused: z.boolean(),
  /** Null while it was never changed. */
  changedAtMs: z.number().nullable(),
  changedBy: z.string().nullable(),
  reason: z.string().nullable(),
});
export type FilialRobotics = z.infer<typeof filialRoboticsSchema>;
export const getFilialRobotics = defineOperation(
  "robotics.filial.get",
  "repeatable",
  z.object({ caller, filialId: id }),
  z.object({ robotics: filialRoboticsSchema }),
);
/** Idempotent: an event is sent only when something changed. */
export const pauseFilialRobotics = defineOperation(
  "robotics.filial.pause",
  "once",
  z.object({ caller, filialId: id, reason }),
  z.object({ robotics: filialRoboticsSchema }),
);
export const resumeFilialRobotics = defineOperation(
  "robotics.filial.resume",
  "once",
  z.object({ caller, filialId: id, reason }),
  z.object({ robotics: filialRoboticsSchema }),
);

/** Who acts in the trail: a person by the role, a consumer, whoever operates the installation, or the system itself. */
export const ROBOTICS_ACTOR_KINDS = [...ROLES, "robotics_consumer", "registry", "system"] as const;
export const ROBOTICS_SUBJECTS = ["robotics_consumer", "serving_task", "filial_robotics", "webhook_endpoint"] as const;
/** Who acted and what changed, newest first. */
export const roboticsTrailEntrySchema = z.object({
  eventId: id,
  atMs: z.number(),
  actor: z.object({ kind: z.enum(ROBOTICS_ACTOR_KINDS), id: z.int(), name: z.string() }),
  action: z.string(),
  subject: z.object({ kind: z.enum(ROBOTICS_SUBJECTS), id }),
  data: z.record(z.string(), z.unknown()),
});
export type RoboticsTrailEntry = z.infer<typeof roboticsTrailEntrySchema>;
export const listRoboticsTrail = defineOperation(
  "robotics.trail.list",
  "repeatable",
  z.object({ caller, ...pageBefore }),
  z.object({ entries: z.array(roboticsTrailEntrySchema), hasMore }),
);

// The consumer's. Its credential is verified on every read and every act (contract, "Webhook-related read and replay endpoints").
/** Who a consumer is, as the service has just found it by its credential. */
export const consumerCallerSchema = z.object({
  consumerId: id,
  name: z.string(),
  organizationId: id,
  filialId: id,
  mode: z.enum(CONSUMER_MODES),
});
export type ConsumerCaller = z.infer<typeof consumerCallerSchema>;
/**
 * By the SHA-256 in lower-case hex of the credential; null when there is none such, and with `suspended` when there is and
 * its owner has suspended it.
 */
export const authenticateConsumer = defineOperation(
  "robotics.consumer.authenticate",
  "repeatable",
  z.object({ credentialHash }),
  z.object({ consumer: consumerCallerSchema.nullable(), suspended: z.boolean().optional() }),
);

const consumer = consumerCallerSchema;
/** Those of one status, or the current ones (offered and accepted), oldest first; and whether the filial is paused. */
export const listTasks = defineOperation(
  "robotics.task.list",
  "repeatable",
  z.object({ consumer, status: z.enum(SERVING_TASK_STATUSES).optional(), ...pageAfter }),
  z.object({ tasks: z.array(servingTaskSchema), hasMore, paused: z.boolean() }),
);
export const getTask = defineOperation(
  "robotics.task.get",
  "repeatable",
  z.object({ consumer, taskId: id }),
  taskReply,
);
/**
 * Accepting what one has accepted changes nothing. Refusals: `task_expired` (its time is over), `task_not_actionable`
 * (with its status), `robotics_paused`.
 */
export const acceptTask = defineOperation(
  "robotics.task.accept",
  "repeatable",
  z.object({ consumer, taskId: id }),
  taskReply,
);
/**
 * Completing what one has completed changes nothing. Refused with `task_not_actionable` in any other status but accepted,
 * and, as accepting is, with `permission_denied` when the owner has suspended the consumer meanwhile. A pause does not hold up
 * what is under way.
 */
export const completeTask = defineOperation(
  "robotics.task.complete",
  "repeatable",
  z.object({ consumer, taskId: id }),
  taskReply,
);

/**
 * The sandbox's own test consumer, made when it is missing, with the credential of that SHA-256 in lower-case hex, which
 * whoever starts the sandbox keeps; idempotent.
 */
export const seedSandboxConsumer = defineOperation(
  "robotics.sandbox.seed",
  "repeatable",
  z.object({ organizationId: id, filialId: id, credentialHash }),
  z.object({ consumerId: id }),
);
