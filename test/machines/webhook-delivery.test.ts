/** The webhook delivery: every state, every event, every next attempt, and random sequences of events. */
import * as fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { take } from "../../machines/pure-transition.ts";
import {
  DELIVERY_STATES,
  type DeliveryAttempt,
  type DeliveryEvent,
  type DeliveryRecord,
  type DeliveryState,
  type DeliveryStep,
  nextDelivery,
  retryInMs,
  webhookDeliveryMachine,
} from "../../machines/webhook-delivery.ts";
import { holdsItsTable, type TransitionTable } from "./transition-table.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const SCHEDULE = [
  5 * SECOND,
  30 * SECOND,
  2 * MINUTE,
  10 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  6 * HOUR,
  12 * HOUR,
  24 * HOUR,
];

const between0And1 = fc.double({ min: 0, max: 1, noNaN: true });

describe("the schedule", () => {
  test("M69 is 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 6 h, 12 h, 24 h, each within 20 %, and then ended", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), between0And1, (attempts, random) => {
        const waitMs = retryInMs({ attempts, retryAfterMs: null, random });
        const plannedMs = SCHEDULE[attempts - 1];
        if (plannedMs === undefined) {
          expect(waitMs).toBeNull();
          return;
        }
        expect(waitMs).toBeGreaterThanOrEqual(plannedMs * 0.8);
        expect(waitMs).toBeLessThanOrEqual(plannedMs * 1.2);
      }),
    );
  });

  test("its random part covers the whole range of 40 %", () => {
    expect(retryInMs({ attempts: 1, retryAfterMs: null, random: 0 })).toBe(4_000);
    expect(retryInMs({ attempts: 1, retryAfterMs: null, random: 1 })).toBe(6_000);
  });

  test("is not earlier than Retry-After, of which at most an hour counts", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.nat(10 * DAY), between0And1, (attempts, retryAfterMs, random) => {
        const waitMs = retryInMs({ attempts, retryAfterMs, random }) ?? 0;
        const plannedMs = retryInMs({ attempts, retryAfterMs: null, random }) ?? 0;
        expect(waitMs).toBe(Math.max(plannedMs, Math.min(retryAfterMs, HOUR)));
      }),
    );
  });
});

const NOW = 1_000_000;
const RETRY = 60_000;
const record: DeliveryRecord = {
  attempts: 3,
  manualAttempts: 0,
  requests: 1,
  dueAtMs: null,
  before: null,
  plannedAtMs: null,
  deliveredAtMs: null,
  lapsesAtMs: null,
};
/** The attempt that the delivery waits for, by the schedule or because it was requested. */
const scheduled: DeliveryAttempt = { number: 4, requests: 1, isManual: false };
const requested: DeliveryAttempt = { ...scheduled, isManual: true };
/** An attempt of a former holder of the owner, reported now. */
const late: DeliveryAttempt = { ...scheduled, number: 1 };

const EVENTS = {
  SUCCEED: { type: "SUCCEED", atMs: NOW, attempt: scheduled },
  "SUCCEED requested": { type: "SUCCEED", atMs: NOW, attempt: requested },
  "SUCCEED late": { type: "SUCCEED", atMs: NOW, attempt: late },
  FAIL: { type: "FAIL", atMs: NOW, attempt: scheduled, retryInMs: RETRY },
  "FAIL for the last time": { type: "FAIL", atMs: NOW, attempt: scheduled, retryInMs: null },
  "FAIL requested": { type: "FAIL", atMs: NOW, attempt: requested, retryInMs: RETRY },
  "FAIL late": { type: "FAIL", atMs: NOW, attempt: late, retryInMs: RETRY },
  "FAIL requested late": { type: "FAIL", atMs: NOW, attempt: { ...late, isManual: true }, retryInMs: RETRY },
  REQUEST: { type: "REQUEST", atMs: NOW, nextDueAtMs: null },
  LAPSE: { type: "LAPSE", atMs: NOW },
  END: { type: "END" },
} as const satisfies Record<string, DeliveryEvent>;
type EventName = keyof typeof EVENTS;

/** An ended delivery counts each attempt and keeps its state. Only a first success or a request changes it. */
const ENDED = { LAPSE: "not taken", END: "not taken", REQUEST: "requested" } as const;
const ended = <TState extends DeliveryState>(state: TState) => ({
  SUCCEED: "delivered" as const,
  "SUCCEED requested": "delivered" as const,
  "SUCCEED late": "delivered" as const,
  FAIL: state,
  "FAIL for the last time": state,
  "FAIL requested": state,
  "FAIL late": state,
  "FAIL requested late": state,
  ...ENDED,
});
/** The table of deliveries that are not offers. A delivery in `requested` was `failed` before. */
const TABLE: TransitionTable<DeliveryState, EventName> = {
  pending: {
    SUCCEED: "delivered",
    "SUCCEED requested": "delivered",
    "SUCCEED late": "delivered",
    FAIL: "pending",
    "FAIL for the last time": "failed",
    "FAIL requested": "pending",
    "FAIL late": "pending",
    "FAIL requested late": "pending",
    REQUEST: "requested",
    LAPSE: "not taken",
    END: "failed",
  },
  requested: {
    SUCCEED: "requested",
    "SUCCEED requested": "delivered",
    "SUCCEED late": "requested",
    FAIL: "requested",
    "FAIL for the last time": "requested",
    "FAIL requested": "failed",
    "FAIL late": "requested",
    "FAIL requested late": "requested",
    REQUEST: "requested",
    LAPSE: "not taken",
    END: "failed",
  },
  delivered: ended("delivered"),
  failed: ended("failed"),
  lapsed: ended("lapsed"),
  unsent: ended("unsent"),
};
const recordIn = (state: DeliveryState): DeliveryRecord => {
  if (state === "pending") return { ...record, dueAtMs: NOW };
  if (state === "requested") return { ...record, dueAtMs: NOW, before: "failed" };
  return state === "delivered" ? { ...record, deliveredAtMs: NOW - 1 } : record;
};
const stepIn = (value: DeliveryState, facts: Partial<DeliveryRecord> = {}): DeliveryStep => ({
  value,
  context: { ...recordIn(value), ...facts },
});

describe("each event with its facts", () => {
  for (const state of DELIVERY_STATES) {
    for (const name of Object.keys(EVENTS) as EventName[]) {
      it(`${state} × ${name} → ${TABLE[state][name]}`, () => {
        expect(nextDelivery(stepIn(state), EVENTS[name])?.value ?? "not taken").toBe(TABLE[state][name]);
      });
    }
  }
});

describe("the next delivery", () => {
  it.each(DELIVERY_STATES)("after %s: it equals the machine's next delivery for every event", (state) => {
    for (const deliveredAtMs of [null, NOW - 1]) {
      for (const event of Object.values(EVENTS)) {
        const from = stepIn(state, { deliveredAtMs, lapsesAtMs: NOW });
        expect(nextDelivery(from, event)).toEqual(take(webhookDeliveryMachine, from, event));
      }
    }
  });
});

type EventType = DeliveryEvent["type"];
const plain = (
  state: DeliveryState,
): Record<EventType, TransitionTable<DeliveryState, EventName>[DeliveryState][EventName]> => {
  const { SUCCEED, FAIL, REQUEST, LAPSE, END } = TABLE[state];
  return { SUCCEED, FAIL, REQUEST, LAPSE, END };
};
holdsItsTable({
  name: "the webhook delivery",
  machine: webhookDeliveryMachine,
  contextIn: recordIn,
  event: (type: EventType) => EVENTS[type],
  table: {
    pending: plain("pending"),
    requested: plain("requested"),
    delivered: plain("delivered"),
    failed: plain("failed"),
    lapsed: plain("lapsed"),
    unsent: plain("unsent"),
  },
});

describe("an offer", () => {
  const LAPSED = { lapsesAtMs: NOW } as const;
  it.each(["pending", "requested"] as const)("%s, past its expiry: it lapses, and no request is accepted", (state) => {
    expect(nextDelivery(stepIn(state, LAPSED), EVENTS.LAPSE)?.value).toBe("lapsed");
    expect(nextDelivery(stepIn(state, LAPSED), EVENTS.REQUEST)).toBeUndefined();
  });

  it("its next attempt would be at its expiry or later: it lapses with the failure", () => {
    const fail = (lapsesAtMs: number) => nextDelivery(stepIn("pending", { lapsesAtMs }), EVENTS.FAIL);
    expect(fail(NOW + RETRY)?.value).toBe("lapsed");
    expect(fail(NOW + RETRY + 1)).toMatchObject({ value: "pending", context: { dueAtMs: NOW + RETRY } });
  });
});

describe("a request", () => {
  it("is due before all waiting deliveries of the endpoint, and keeps the time of the schedule", () => {
    const dueAtMs = NOW + 300_000;
    const first = nextDelivery(stepIn("pending", { dueAtMs }), { ...EVENTS.REQUEST, nextDueAtMs: NOW - 5_000 });
    const kept = { requests: 2, before: "pending", plannedAtMs: dueAtMs, dueAtMs: NOW - 5_000 - 0.001 };
    expect(first).toMatchObject({ value: "requested", context: kept });
    const twice = nextDelivery(first ?? stepIn("pending"), EVENTS.REQUEST);
    expect(twice?.context).toMatchObject({ requests: 3, before: "pending", plannedAtMs: dueAtMs });
  });

  it("its attempt fails: the schedule keeps its attempts, and the delivery is due at the same time as before", () => {
    const from = stepIn("requested", { before: "pending", plannedAtMs: NOW + 300_000 });
    const after = nextDelivery(from, { ...EVENTS["FAIL requested"], retryInMs: null });
    const context = { attempts: 4, manualAttempts: 1, dueAtMs: NOW + 300_000, before: null, plannedAtMs: null };
    expect(after).toMatchObject({ value: "pending", context });
  });

  it.each([
    ["delivered", "delivered"],
    ["failed", "failed"],
    ["lapsed", "lapsed"],
    ["unsent", "failed"],
  ] as const)("of a delivery that was %s: after a failure it is %s", (before, after) => {
    const deliveredAtMs = before === "delivered" ? NOW - 1 : null;
    const step = nextDelivery(stepIn("requested", { before, deliveredAtMs }), EVENTS["FAIL requested"]);
    expect(step).toMatchObject({ value: after, context: { dueAtMs: null, before: null } });
  });

  it("the result of an earlier attempt arrives: the delivery stays requested, and the result is stored for later", () => {
    const from = stepIn("requested", { before: "pending", plannedAtMs: NOW });
    const failed = nextDelivery(from, EVENTS.FAIL);
    expect(failed).toMatchObject({ value: "requested", context: { before: "pending", plannedAtMs: NOW + RETRY } });
    const last = nextDelivery(from, EVENTS["FAIL for the last time"]);
    expect(last).toMatchObject({ value: "requested", context: { before: "failed", plannedAtMs: null } });
    const arrived = nextDelivery(from, EVENTS.SUCCEED);
    expect(arrived).toMatchObject({ value: "requested", context: { before: "delivered", deliveredAtMs: NOW } });
  });
});

describe("any events in any order", () => {
  const lives = fc.array(
    fc.tuple(fc.constantFrom(...(Object.keys(EVENTS) as EventName[])), fc.nat(3), fc.nat(2), fc.boolean()),
    { maxLength: 30 },
  );

  /** Takes the events that the machine accepts; an attempt's number and requests are at most those of the delivery. */
  function live(events: readonly (readonly [EventName, number, number, boolean])[]): readonly DeliveryStep[] {
    const steps: DeliveryStep[] = [stepIn("pending", { attempts: 0, requests: 0, lapsesAtMs: null })];
    for (const [name, before, requestsBefore, isManual] of events) {
      const from = steps.at(-1) as DeliveryStep;
      const event: DeliveryEvent = EVENTS[name];
      const number = Math.max(1, from.context.attempts + 1 - before);
      const requests = Math.max(0, from.context.requests - requestsBefore);
      const received = "attempt" in event ? { ...event, attempt: { number, requests, isManual } } : event;
      steps.push(nextDelivery(from, received) ?? from);
    }
    return steps;
  }

  it("M66 every attempt is counted, and a delivery is due exactly while it is pending or requested", () => {
    fc.assert(
      fc.property(lives, (events) => {
        const steps = live(events);
        for (const { value, context } of steps) {
          const isDue = value === "pending" || value === "requested";
          expect(context.dueAtMs !== null).toBe(isDue);
          expect(context.before !== null).toBe(value === "requested");
          expect(context.plannedAtMs !== null).toBe(context.before === "pending");
        }
        const attempts = events.filter(([name]) => name.startsWith("SUCCEED") || name.startsWith("FAIL"));
        expect(steps.at(-1)?.context.attempts).toBe(attempts.length);
      }),
    );
  });

  it("M67 a success is never lost: an arrived delivery ends as delivered, whatever events follow", () => {
    fc.assert(
      fc.property(lives, (events) => {
        const end = live([...events, ["SUCCEED late", 3, 2, false]]).at(-1) as DeliveryStep;
        expect(end.context.deliveredAtMs).not.toBeNull();
        expect(["delivered", "requested"]).toContain(end.value);
        if (end.value === "requested") expect(end.context.before).toBe("delivered");
      }),
    );
  });

  it("M68 a late failure changes only the count", () => {
    fc.assert(
      fc.property(fc.constantFrom(...DELIVERY_STATES), fc.integer({ min: 1, max: 3 }), (state, number) => {
        const from = stepIn(state);
        const attempt = { number, requests: 0, isManual: false };
        const after = nextDelivery(from, { ...EVENTS.FAIL, attempt });
        expect(after).toEqual({ value: state, context: { ...from.context, attempts: 4 } });
      }),
    );
  });
});
