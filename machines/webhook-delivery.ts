/**
 * How a webhook delivery moves: one event for one endpoint, from the event to its last attempt (contract, "Delivery").
 *
 *   ┌─────────┐ ─SUCCEED──────────────► (delivered)
 *   │ pending │ ─FAIL, attempts left──► pending, at a later time
 *   └─────────┘ ─FAIL, none left──────► (failed)       ─FAIL, the offer expires before the next attempt─► (lapsed)
 *        │      ─END──────────────────► (failed)       ─LAPSE─► (lapsed)
 *     REQUEST
 *        ▼
 *   ┌───────────┐ ─SUCCEED────────────► (delivered)
 *   │ requested │ ─FAIL───────────────► what it was before the request; failed when it was unsent
 *   └───────────┘ ─END, LAPSE─────────► as from pending
 *        ▲
 *     REQUEST ── (delivered) (failed) (lapsed) (unsent)
 *
 * A delivery begins as `unsent` when the endpoint is missing or disabled at the time of the event. A REQUEST asks for one
 * attempt outside the schedule: its failure uses up no attempt of the schedule. An attempt that began before the REQUEST does
 * not answer it: the delivery stays `requested`, and `before` takes that attempt's result.
 *
 * The machine counts every attempt. When the delivery does not wait for an attempt any more, because another process has
 * taken over, its failure changes only the count. A success always makes it `delivered`, because the target has the event.
 *
 * The endpoint of a delivery has its own rules: `webhook-breaker.ts`.
 */
import { assign, not, setup } from "xstate";
import { take } from "./pure-transition.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** When a failed delivery is sent again. The documents for consumers and owners quote these numbers. */
export const DELIVERY_RULES = {
  /** The waits before each later attempt: together they outlast a restart, an outage, a night and a day. */
  retryAfterMs: [
    5 * SECOND_MS,
    30 * SECOND_MS,
    2 * MINUTE_MS,
    10 * MINUTE_MS,
    30 * MINUTE_MS,
    2 * HOUR_MS,
    6 * HOUR_MS,
    12 * HOUR_MS,
    24 * HOUR_MS,
  ],
  /** A wait varies at random by up to this share, so that deliveries that failed together are not repeated together. */
  retryJitter: 0.2,
  /** The longest wait that a target may ask for by `Retry-After`. */
  longestRetryAfterMs: HOUR_MS,
} as const;

interface FailedAttempt {
  /** Scheduled attempts that have ended, including this one. */
  readonly attempts: number;
  /** The target's `Retry-After`; null without one. */
  readonly retryAfterMs: number | null;
  /** From 0 to 1, for the jitter. */
  readonly random: number;
}

/** Milliseconds until the next attempt; null when the attempts are used up. */
export function retryInMs({ attempts, retryAfterMs, random }: FailedAttempt): number | null {
  const plannedMs = DELIVERY_RULES.retryAfterMs[attempts - 1];
  if (plannedMs === undefined) return null;
  const spreadMs = plannedMs * (1 + DELIVERY_RULES.retryJitter * (2 * random - 1));
  const requestedMs = Math.min(retryAfterMs ?? 0, DELIVERY_RULES.longestRetryAfterMs);
  return Math.round(Math.max(spreadMs, requestedMs));
}

export const DELIVERY_STATES = ["pending", "requested", "delivered", "failed", "lapsed", "unsent"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];
/** The states of a delivery without a request. */
export type ScheduledState = Exclude<DeliveryState, "requested">;

/** Everything about a delivery but its state. Times are milliseconds since the epoch. */
export interface DeliveryRecord {
  /** Attempts that have ended. */
  readonly attempts: number;
  /** The ended attempts that were requested: the schedule does not count these. */
  readonly manualAttempts: number;
  /** How often one more attempt has been requested. */
  readonly requests: number;
  /** When the next attempt is due; null in a state that has none. */
  readonly dueAtMs: number | null;
  /** In `requested`: the state to which the delivery returns; otherwise null. */
  readonly before: ScheduledState | null;
  /** In `requested`: when the schedule's next attempt is due; null without one. */
  readonly plannedAtMs: number | null;
  /** When the first attempt succeeded. */
  readonly deliveredAtMs: number | null;
  /** When the offer expires: no attempt begins after that. Null for an event that is not an offer. */
  readonly lapsesAtMs: number | null;
}

/** The delivery as the sending process knew it when the attempt began. */
export interface DeliveryAttempt {
  /** The first attempt is 1. */
  readonly number: number;
  /** How often one more attempt had been requested by then. */
  readonly requests: number;
  /** Whether a request caused the attempt. */
  readonly isManual: boolean;
}

export type DeliveryEvent =
  | { readonly type: "SUCCEED"; readonly atMs: number; readonly attempt: DeliveryAttempt }
  | {
      readonly type: "FAIL";
      readonly atMs: number;
      readonly attempt: DeliveryAttempt;
      /** The result of `retryInMs`. */
      readonly retryInMs: number | null;
    }
  | {
      readonly type: "REQUEST";
      readonly atMs: number;
      /** When the endpoint's next attempt is due; the requested attempt goes before it. Null when none is due. */
      readonly nextDueAtMs: number | null;
    }
  /** The offer has expired. */
  | { readonly type: "LAPSE"; readonly atMs: number }
  /** The endpoint is deleted or disabled, or was paused for the whole retention of deliveries. */
  | { readonly type: "END" };
type AttemptEvent = Extract<DeliveryEvent, { readonly type: "SUCCEED" | "FAIL" }>;
type FailEvent = Extract<DeliveryEvent, { readonly type: "FAIL" }>;

/** The resolution of PostgreSQL's timestamps: the smallest amount by which one delivery is due before another. */
const EARLIER_MS = 0.001;

const ENDED = { dueAtMs: null, before: null, plannedAtMs: null } as const;

/** Whether this is the attempt that the delivery waits for. */
const isAwaited = ({ attempts }: DeliveryRecord, { number }: DeliveryAttempt): boolean => attempts === number - 1;

/** Whether this attempt counts as one of the schedule. */
const isOfSchedule = (record: DeliveryRecord, { attempt }: AttemptEvent): boolean =>
  isAwaited(record, attempt) && !attempt.isManual;

interface Scheduled {
  readonly state: ScheduledState;
  readonly dueAtMs: number | null;
}

/** The state and due time after a scheduled attempt has failed. */
function afterFailure({ deliveredAtMs, lapsesAtMs }: DeliveryRecord, { atMs, retryInMs: inMs }: FailEvent): Scheduled {
  if (deliveredAtMs !== null) return { state: "delivered", dueAtMs: null };
  if (inMs === null) return { state: "failed", dueAtMs: null };
  if (lapsesAtMs !== null && lapsesAtMs <= atMs + inMs) return { state: "lapsed", dueAtMs: null };
  return { state: "pending", dueAtMs: atMs + inMs };
}

/** The state and due time that a requested delivery has without its request, after an attempt has failed. */
function withoutRequest(record: DeliveryRecord, event: FailEvent): Scheduled {
  if (isOfSchedule(record, event)) return afterFailure(record, event);
  const { before, plannedAtMs } = record;
  if (before === "pending") return { state: before, dueAtMs: plannedAtMs };
  const state = before === null || (before === "unsent" && isAwaited(record, event.attempt)) ? "failed" : before;
  return { state, dueAtMs: null };
}

/** The record with this attempt counted. It keeps the time of the first success. */
const counted = (record: DeliveryRecord, event: AttemptEvent): DeliveryRecord => ({
  ...record,
  attempts: record.attempts + 1,
  manualAttempts: record.manualAttempts + (event.attempt.isManual ? 1 : 0),
  deliveredAtMs: event.type === "SUCCEED" ? (record.deliveredAtMs ?? event.atMs) : record.deliveredAtMs,
});

/** The transitions that end a delivery in `pending` or `requested`. */
const ENDINGS = {
  LAPSE: [
    { guard: "hasExpiredDelivered", target: "delivered", actions: "end" },
    { guard: "hasExpired", target: "lapsed", actions: "end" },
  ],
  END: [
    { guard: "wasDelivered", target: "delivered", actions: "end" },
    { target: "failed", actions: "end" },
  ],
} as const;

/** The transitions of a delivery that has ended: an attempt's result may arrive later. */
const LATE = {
  SUCCEED: [{ guard: "isFirstSuccess", target: "delivered", actions: "end" }, { actions: "count" }],
  FAIL: { actions: "count" },
} as const;

const requestFrom = (before: ScheduledState | null) =>
  ({ guard: "isInTime", target: "requested", actions: { type: "request", params: { before } } }) as const;

export const webhookDeliveryMachine = setup({
  types: { context: {} as DeliveryRecord, events: {} as DeliveryEvent },
  guards: {
    /** Whether a success changes the state. A late success of a delivery that the target has already does not. */
    changesState: ({ context, event }) =>
      event.type === "SUCCEED" && (context.deliveredAtMs === null || isAwaited(context, event.attempt)),
    isFirstSuccess: ({ context, event }) => event.type === "SUCCEED" && context.deliveredAtMs === null,
    /** Whether the attempt is the one that was requested last. */
    answersRequest: ({ context, event }) =>
      (event.type === "SUCCEED" || event.type === "FAIL") &&
      event.attempt.isManual &&
      event.attempt.requests === context.requests &&
      (isAwaited(context, event.attempt) || (event.type === "SUCCEED" && context.deliveredAtMs === null)),
    /** Whether the failure of a scheduled attempt leads to this state. */
    leadsTo: ({ context, event }, { state }: { readonly state: ScheduledState }) =>
      event.type === "FAIL" && isOfSchedule(context, event) && afterFailure(context, event).state === state,
    /** Whether the failure of the requested attempt leads back to this state. */
    leavesIt: ({ context, event }, { state }: { readonly state: ScheduledState }) =>
      event.type === "FAIL" && withoutRequest(context, event).state === state,
    wasDelivered: ({ context }) => context.deliveredAtMs !== null,
    isInTime: ({ context: { lapsesAtMs }, event }) =>
      event.type === "REQUEST" && (lapsesAtMs === null || event.atMs < lapsesAtMs),
    hasExpired: ({ context: { lapsesAtMs }, event }) =>
      event.type === "LAPSE" && lapsesAtMs !== null && lapsesAtMs <= event.atMs,
    hasExpiredDelivered: ({ context: { lapsesAtMs, deliveredAtMs }, event }) =>
      event.type === "LAPSE" && lapsesAtMs !== null && lapsesAtMs <= event.atMs && deliveredAtMs !== null,
  },
  actions: {
    count: assign(({ context, event }) =>
      event.type === "SUCCEED" || event.type === "FAIL" ? counted(context, event) : context,
    ),
    end: assign(({ context, event }) => ({
      ...(event.type === "SUCCEED" || event.type === "FAIL" ? counted(context, event) : context),
      ...ENDED,
    })),
    retry: assign(({ context, event }) => {
      if (event.type !== "FAIL") return context;
      return { ...counted(context, event), dueAtMs: afterFailure(context, event).dueAtMs };
    }),
    /** The request is answered, and the schedule continues. */
    resume: assign(({ context, event }) => {
      if (event.type !== "FAIL") return context;
      const { dueAtMs } = withoutRequest(context, event);
      return { ...counted(context, event), ...ENDED, dueAtMs };
    }),
    /** The request stays. `before` and `plannedAtMs` become what this attempt leads to. */
    keepRequest: assign(({ context, event }) => {
      if (event.type === "SUCCEED")
        return { ...counted(context, event), before: "delivered" as const, plannedAtMs: null };
      if (event.type !== "FAIL") return context;
      const { state: before, dueAtMs: plannedAtMs } = withoutRequest(context, event);
      return { ...counted(context, event), before, plannedAtMs };
    }),
    request: assign(({ context, event }, { before }: { readonly before: ScheduledState | null }) => {
      if (event.type !== "REQUEST") return context;
      const { atMs, nextDueAtMs } = event;
      return {
        ...context,
        requests: context.requests + 1,
        // On a second request, the first one has already stored `before` and `plannedAtMs`.
        before: before ?? context.before,
        plannedAtMs: before === null ? context.plannedAtMs : context.dueAtMs,
        dueAtMs: nextDueAtMs === null ? atMs : Math.min(atMs, nextDueAtMs - EARLIER_MS),
      };
    }),
  },
}).createMachine({
  id: "webhookDelivery",
  initial: "pending",
  context: {
    attempts: 0,
    manualAttempts: 0,
    requests: 0,
    ...ENDED,
    deliveredAtMs: null,
    lapsesAtMs: null,
  },
  states: {
    pending: {
      on: {
        SUCCEED: [{ guard: "changesState", target: "delivered", actions: "end" }, { actions: "count" }],
        FAIL: [
          { guard: { type: "leadsTo", params: { state: "pending" } }, actions: "retry" },
          { guard: { type: "leadsTo", params: { state: "failed" } }, target: "failed", actions: "end" },
          { guard: { type: "leadsTo", params: { state: "lapsed" } }, target: "lapsed", actions: "end" },
          { guard: { type: "leadsTo", params: { state: "delivered" } }, target: "delivered", actions: "end" },
          { actions: "count" },
        ],
        REQUEST: requestFrom("pending"),
        ...ENDINGS,
      },
    },
    requested: {
      on: {
        SUCCEED: [
          { guard: "answersRequest", target: "delivered", actions: "end" },
          { guard: "changesState", actions: "keepRequest" },
          { actions: "count" },
        ],
        FAIL: [
          { guard: not("answersRequest"), actions: "keepRequest" },
          { guard: { type: "leavesIt", params: { state: "pending" } }, target: "pending", actions: "resume" },
          { guard: { type: "leavesIt", params: { state: "delivered" } }, target: "delivered", actions: "resume" },
          { guard: { type: "leavesIt", params: { state: "lapsed" } }, target: "lapsed", actions: "resume" },
          { target: "failed", actions: "resume" },
        ],
        REQUEST: requestFrom(null),
        ...ENDINGS,
      },
    },
    delivered: { on: { SUCCEED: { actions: "count" }, FAIL: { actions: "count" }, REQUEST: requestFrom("delivered") } },
    failed: { on: { ...LATE, REQUEST: requestFrom("failed") } },
    lapsed: { on: { ...LATE, REQUEST: requestFrom("lapsed") } },
    unsent: { on: { ...LATE, REQUEST: requestFrom("unsent") } },
  },
});

/** A delivery at one moment. */
export interface DeliveryStep {
  readonly value: DeliveryState;
  readonly context: DeliveryRecord;
}

/**
 * The delivery after an event; undefined when the event changes nothing. Nearly every delivery succeeds at the first attempt.
 * This function handles that event without the machine, because the machine would double the cost of storing the delivery.
 */
export function nextDelivery(from: DeliveryStep, event: DeliveryEvent): DeliveryStep | undefined {
  if (event.type === "SUCCEED" && from.value === "pending" && from.context.deliveredAtMs === null) {
    return { value: "delivered", context: { ...counted(from.context, event), ...ENDED } };
  }
  return take(webhookDeliveryMachine, from, event) as DeliveryStep | undefined;
}
