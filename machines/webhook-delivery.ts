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
 * `unsent` is written when the endpoint is missing or disabled at the time of the event. A request is one more attempt
 * beside the schedule: its failure uses up no attempt of the schedule. An attempt that began before the request does not
 * answer it, so the delivery stays `requested` and `before` takes that attempt's result.
 *
 * Every attempt is counted. A failure of an attempt that the delivery does not wait for any more (its process has lost the
 * owner) changes nothing else. A success always counts, because the target has the event: `delivered` is never lost.
 *
 * The endpoint of a delivery has its own rules: `webhook-breaker.ts`.
 */
import { assign, not, setup } from "xstate";
import { take } from "./pure-transition.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** When a failed delivery is sent again. Consumers and owners read these numbers in documents. */
export const DELIVERY_RULES = {
  /** Attempts after the first: a restart, an outage, a night, a day. */
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
  /** Deliveries that failed together are not repeated together. */
  retryJitter: 0.2,
  /** A target may ask for more time, but not put a delivery off for a day. */
  longestRetryAfterMs: HOUR_MS,
} as const;

export interface FailedAttempt {
  /** Attempts of the schedule that have ended, this one included. */
  readonly attempts: number;
  /** What the target asked for by `Retry-After`; null when it asked for nothing. */
  readonly retryAfterMs: number | null;
  /** From 0 to 1: spreads the repetitions of many deliveries that failed together. */
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
/** What a delivery is without the request. */
export type ScheduledState = Exclude<DeliveryState, "requested">;

/** Everything about a delivery but its state. Times are milliseconds since the epoch. */
export interface DeliveryRecord {
  /** That have ended. */
  readonly attempts: number;
  /** Of those, the requested ones, which the schedule does not count. */
  readonly manualAttempts: number;
  /** How often one more attempt has been requested. */
  readonly requests: number;
  /** When the next attempt is due; null in a state that has none. */
  readonly dueAtMs: number | null;
  /** In `requested`: the state without the request; else null. */
  readonly before: ScheduledState | null;
  /** In `requested`: when the delivery is due by the schedule; null when it is not. */
  readonly plannedAtMs: number | null;
  /** When it was delivered first. */
  readonly deliveredAtMs: number | null;
  /** An offer's expiry: no attempt begins after it; null for every other event. */
  readonly lapsesAtMs: number | null;
}

/** The delivery as the attempt's process knew it when the attempt began. */
export interface DeliveryAttempt {
  /** Which attempt of the delivery it is; the first is 1. */
  readonly number: number;
  /** How often one more attempt had been requested. */
  readonly requests: number;
  /** Whether it answers a request. */
  readonly isManual: boolean;
}

export type DeliveryEvent =
  | { readonly type: "SUCCEED"; readonly atMs: number; readonly attempt: DeliveryAttempt }
  | {
      readonly type: "FAIL";
      readonly atMs: number;
      readonly attempt: DeliveryAttempt;
      /** As `retryInMs` decided it. */
      readonly retryInMs: number | null;
    }
  | {
      readonly type: "REQUEST";
      readonly atMs: number;
      /** When the next attempt to the same endpoint is due: the requested one comes before it; null for none. */
      readonly nextDueAtMs: number | null;
    }
  /** The offer has expired. */
  | { readonly type: "LAPSE"; readonly atMs: number }
  /** The endpoint is deleted or disabled, or has been paused for as long as deliveries are kept. */
  | { readonly type: "END" };
type AttemptEvent = Extract<DeliveryEvent, { readonly type: "SUCCEED" | "FAIL" }>;
type FailEvent = Extract<DeliveryEvent, { readonly type: "FAIL" }>;

/** PostgreSQL's unit of time: the least by which one delivery is due before another. */
const EARLIER_MS = 0.001;

const ENDED = { dueAtMs: null, before: null, plannedAtMs: null } as const;

/** Whether the delivery, while it is due, waits for this very attempt. */
const isAwaited = ({ attempts }: DeliveryRecord, { number }: DeliveryAttempt): boolean => attempts === number - 1;

/** Whether the schedule decides what follows from a failure. */
const isOfSchedule = (record: DeliveryRecord, { attempt }: AttemptEvent): boolean =>
  isAwaited(record, attempt) && !attempt.isManual;

interface Scheduled {
  readonly state: ScheduledState;
  readonly dueAtMs: number | null;
}

/** What follows from the failure of an attempt of the schedule. */
function afterFailure({ deliveredAtMs, lapsesAtMs }: DeliveryRecord, { atMs, retryInMs: inMs }: FailEvent): Scheduled {
  if (deliveredAtMs !== null) return { state: "delivered", dueAtMs: null };
  if (inMs === null) return { state: "failed", dueAtMs: null };
  if (lapsesAtMs !== null && lapsesAtMs <= atMs + inMs) return { state: "lapsed", dueAtMs: null };
  return { state: "pending", dueAtMs: atMs + inMs };
}

/** What a requested delivery is without the request, after the failure of an attempt. */
function withoutRequest(record: DeliveryRecord, event: FailEvent): Scheduled {
  if (isOfSchedule(record, event)) return afterFailure(record, event);
  const { before, plannedAtMs } = record;
  if (before === "pending") return { state: before, dueAtMs: plannedAtMs };
  const state = before === null || (before === "unsent" && isAwaited(record, event.attempt)) ? "failed" : before;
  return { state, dueAtMs: null };
}

/** Every attempt is counted, and the first success is kept. */
const counted = (record: DeliveryRecord, event: AttemptEvent): DeliveryRecord => ({
  ...record,
  attempts: record.attempts + 1,
  manualAttempts: record.manualAttempts + (event.attempt.isManual ? 1 : 0),
  deliveredAtMs: event.type === "SUCCEED" ? (record.deliveredAtMs ?? event.atMs) : record.deliveredAtMs,
});

/** What ends a delivery that is due, requested or not. */
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

/** Attempts that end after their delivery has. */
const LATE = {
  SUCCEED: [{ guard: "isFirstSuccess", target: "delivered", actions: "end" }, { actions: "count" }],
  FAIL: { actions: "count" },
} as const;

const requestFrom = (before: ScheduledState | null) =>
  ({ guard: "isInTime", target: "requested", actions: { type: "request", params: { before } } }) as const;

export const webhookDeliveryMachine = setup({
  types: { context: {} as DeliveryRecord, events: {} as DeliveryEvent },
  guards: {
    /** Whether a success changes the state: one that comes late, of a delivery that had arrived before, does not. */
    changesState: ({ context, event }) =>
      event.type === "SUCCEED" && (context.deliveredAtMs === null || isAwaited(context, event.attempt)),
    isFirstSuccess: ({ context, event }) => event.type === "SUCCEED" && context.deliveredAtMs === null,
    /** Whether the attempt is the one that was requested last. */
    answersRequest: ({ context, event }) =>
      (event.type === "SUCCEED" || event.type === "FAIL") &&
      event.attempt.isManual &&
      event.attempt.requests === context.requests &&
      (isAwaited(context, event.attempt) || (event.type === "SUCCEED" && context.deliveredAtMs === null)),
    /** Of a failure of the schedule. */
    leadsTo: ({ context, event }, { state }: { readonly state: ScheduledState }) =>
      event.type === "FAIL" && isOfSchedule(context, event) && afterFailure(context, event).state === state,
    /** Of a failure that answers the request. */
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
    /** The request is answered, and the schedule goes on as before it. */
    resume: assign(({ context, event }) => {
      if (event.type !== "FAIL") return context;
      const { dueAtMs } = withoutRequest(context, event);
      return { ...counted(context, event), ...ENDED, dueAtMs };
    }),
    /** The request stays, and what was before it becomes what this attempt leads to. */
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
        // Of a delivery that is requested twice, the first request has kept both.
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
 * The delivery after an event; undefined when the event does nothing to it. The first success of a pending delivery, the step
 * that nearly all take, is made here without the machine, which costs as much as all the rest of writing it.
 */
export function nextDelivery(from: DeliveryStep, event: DeliveryEvent): DeliveryStep | undefined {
  if (event.type === "SUCCEED" && from.value === "pending" && from.context.deliveredAtMs === null) {
    return { value: "delivered", context: { ...counted(from.context, event), ...ENDED } };
  }
  return take(webhookDeliveryMachine, from, event) as DeliveryStep | undefined;
}
