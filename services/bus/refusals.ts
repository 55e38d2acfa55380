/**
 * The codes with which services refuse, beside the station's own (`machines/station/reply.ts`). The gateway maps each to
 * a status and one sentence in `gateway/http/errors.ts`; a code that is missing there does not compile.
 */

import { errors } from "nats";
import { z } from "zod";
import { REFUSAL_CODES } from "../../machines/station/reply.ts";
import { fieldErrorSchema } from "./field-errors.ts";

export const SERVICE_REFUSAL_CODES = [
  /** The request is well-formed but its values are not: `errors` names each by JSON pointer. */
  "invalid_request",
  /** The thing does not exist, or belongs to another organization: both get the same answer. */
  "not_found",
  /** The thing is not in a state in which this can be done to it. */
  "conflict",
  /** An earlier request with this idempotency key has made it, and its answer had something that is shown once. */
  "already_created",
  /** The e-mail address is another person's. */
  "already_exists",
  /** The person may not do this. */
  "permission_denied",
  "login_failed",
  "login_throttled",
  "enrollment_code_invalid",
  /** Robotics is paused at the filial: no task is offered or accepted. */
  "robotics_paused",
  /** The offer's time is over. */
  "task_expired",
  /** The task is in a status in which this cannot be done; `status` names it. */
  "task_not_actionable",
  /** The address is not one that webhooks may go to; `reason` says why. */
  "webhook_target_refused",
  /** The delivery has no endpoint that is in use. */
  "endpoint_unavailable",
  /** The delivery is about an offer that has expired: it is not sent any more. */
  "delivery_lapsed",
  /** The disk is short of space, and this can wait; nothing was done. */
  "storage_low",
  /** Too much at once; nothing was done; try again. */
  "busy",
  /** Something this service depends on does not answer; whether the command took effect is found by repeating it. */
  "unavailable",
] as const;

export const BUS_REFUSAL_CODES = [...SERVICE_REFUSAL_CODES, ...REFUSAL_CODES] as const;
export type BusRefusalCode = (typeof BUS_REFUSAL_CODES)[number];

export const busRefusalSchema = z.object({
  code: z.enum(BUS_REFUSAL_CODES),
  /** One sentence for a person where the code's own sentence is not enough. */
  detail: z.string().optional(),
  /** The intent's or the serving task's status, where the refusal is about one. */
  status: z.string().optional(),
  /** Why a route is withdrawn or an issue not resolved, or who holds a lease. */
  reason: z.string().optional(),
  errors: z.array(fieldErrorSchema).optional(),
  retryAfterMs: z.number().optional(),
});
export type BusRefusal = z.infer<typeof busRefusalSchema>;

/** Thrown by a service's handler instead of its reply. With `retryAfterMs` the same request may pass later. */
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

/** What a query has found; throws `not_found` where it has found nothing. An id of the body is named by its field. */
export function existing<T>(found: T | undefined, field?: string): T {
  if (found === undefined) {
    const detail = field === undefined ? undefined : `There is nothing here with this \`${field}\`.`;
    throw new RefusedError({ code: "not_found", detail });
  }
  return found;
}

/** Whether a request failed because no process listens: the bus has delivered it to none, so nothing was done. */
export function isNoResponders(cause: unknown): boolean {
  return cause instanceof errors.NoRespondersError || (cause instanceof errors.RequestError && cause.isNoResponders());
}
