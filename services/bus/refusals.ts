/**
 * The refusal codes of the services; those of stations are in `machines/station/reply.ts`. The gateway maps each code
 * to a status and one sentence in `gateway/http/errors.ts`. The compiler reports a code that is missing there.
 */

import { errors } from "nats";
import { z } from "zod";
import { REFUSAL_CODES, type StationReply } from "../../machines/station/reply.ts";
import { type FieldError, type FieldErrorCode, fieldErrorSchema } from "./field-errors.ts";

export const SERVICE_REFUSAL_CODES = [
  /** The request is well-formed but its values are not: `errors` names each by JSON pointer. */
  "invalid_request",
  /** The thing does not exist, or belongs to another organization: the answer is the same. */
  "not_found",
  /** The state of the thing does not allow the operation. */
  "conflict",
  /**
   * An earlier request with this idempotency key has created the thing, and only the first answer may show its secret.
   */
  "already_created",
  /** Another person has the e-mail address. */
  "already_exists",
  /** The person may not do this. */
  "permission_denied",
  "login_failed",
  "login_throttled",
  "enrollment_code_invalid",
  /** Robotics is paused at the filial: tasks can be neither offered nor accepted. */
  "robotics_paused",
  /** The offer has expired. */
  "task_expired",
  /** The status of the task does not allow the operation; `status` has it. */
  "task_not_actionable",
  /** The service must not send webhooks to this address; `reason` has the cause. */
  "webhook_target_refused",
  /** The delivery has no active endpoint. */
  "endpoint_unavailable",
  /** The delivery is about an expired offer, so the service does not send it any more. */
  "delivery_lapsed",
  /** The disk is short of space, and the operation can wait. The service has done nothing. */
  "storage_low",
  /** The service has too much to do. It has done nothing, and the caller may repeat the request. */
  "busy",
  /**
   * A dependency of the service does not answer, so the outcome is unknown. The caller repeats the request to find it
   * out.
   */
  "unavailable",
] as const;

export const BUS_REFUSAL_CODES = [...SERVICE_REFUSAL_CODES, ...REFUSAL_CODES] as const;
export type BusRefusalCode = (typeof BUS_REFUSAL_CODES)[number];

export const busRefusalSchema = z.object({
  code: z.enum(BUS_REFUSAL_CODES),
  /** One sentence for a person, where the gateway's sentence for the code is not enough. */
  detail: z.string().optional(),
  /** The intent's or the serving task's status, where the refusal is about one. */
  status: z.string().optional(),
  /** Why a route is withdrawn, why an issue is not resolved, or who holds a lease. */
  reason: z.string().optional(),
  errors: z.array(fieldErrorSchema).optional(),
  retryAfterMs: z.number().optional(),
});
export type BusRefusal = z.infer<typeof busRefusalSchema>;

/** Thrown by a service's handler instead of a reply. With `retryAfterMs` the same request may succeed later. */
export class RefusedError extends Error {
  readonly refusal: BusRefusal;
  constructor(refusal: BusRefusal) {
    super(refusal.detail ?? refusal.code);
    this.name = "RefusedError";
    this.refusal = refusal;
  }
}

/** Thrown by `call` and `askStation`: the service that was asked refused. */
export class AskedServiceRefused extends RefusedError {}

/** Thrown by `call` when no answer came in time: retryable, and the outcome is unknown. */
export class UnavailableError extends Error {
  readonly code = "unavailable";
  constructor(subject: string, cause: unknown) {
    super(`No answer came from ${subject} in time.`, { cause });
    this.name = "UnavailableError";
  }
}

/** The station answers `station_unknown`: the bus has lost it, and the relay has not restored it yet. */
export class NotRestoredError extends Error {
  readonly code = "station_not_restored";
  constructor() {
    super("The bus does not have this station again yet.");
    this.name = "NotRestoredError";
  }
}

/** Whether the bus does not have the station: it was never described, or the bus has lost it. */
export function isStationUnknown(reply: StationReply): boolean {
  return !reply.ok && reply.code === "station_unknown";
}

/**
 * Returns what a query has found; throws `not_found` where it has found nothing, or where a check answers `false`. `field`
 * is the name of the id's field in the body.
 */
export function existing<T>(found: T | undefined | false, field?: string): T {
  if (found === undefined || found === false) {
    const detail = field === undefined ? undefined : `There is nothing here with this \`${field}\`.`;
    throw new RefusedError({ code: "not_found", detail });
  }
  return found;
}

/** The refusal of a request for one of its fields. */
export const invalidField = (
  pointer: string,
  code: FieldErrorCode,
  detail: string,
  more: Pick<FieldError, "limit"> = {},
): RefusedError => new RefusedError({ code: "invalid_request", errors: [{ pointer, code, ...more, detail }] });

/** Whether a request failed because no process listens: the bus has delivered it to none, so nothing was done. */
export function isNoResponders(cause: unknown): boolean {
  return cause instanceof errors.NoRespondersError || (cause instanceof errors.RequestError && cause.isNoResponders());
}
