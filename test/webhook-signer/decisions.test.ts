/** What is decided without a network or a database: when to try again, whom to leave alone, who finds a place. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { envelope } from "../../services/webhook-signer/deliveries/envelope.ts";
import { SIGNER_LIMITS } from "../../services/webhook-signer/limits.ts";
import {
  afterFailure,
  type BreakerState,
  breaking,
  CLOSED,
  disabledBy,
  roomOf,
} from "../../services/webhook-signer/sending/breaker.ts";
import { EndpointWork, type Waiting } from "../../services/webhook-signer/sending/endpoint-work.ts";
import { retryInMs } from "../../services/webhook-signer/sending/schedule.ts";
import { type Pace, Slots } from "../../services/webhook-signer/sending/slots.ts";
import { signatureHeader } from "../../services/webhook-signer/signing.ts";
import { expectedSignature, parseSignature } from "./receiver.ts";

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
  test("is 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 6 h, 12 h, 24 h, each within 20 %, and then over", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), between0And1, (attempts, random) => {
        const waitMs = retryInMs({ attempts, retryAfterMs: null, random });
        const plannedMs = SCHEDULE[attempts - 1];
        if (plannedMs === undefined) {
          expect(waitMs).toBeUndefined();
          return;
        }
        expect(waitMs).toBeGreaterThanOrEqual(plannedMs * 0.8);
        expect(waitMs).toBeLessThanOrEqual(plannedMs * 1.2);
      }),
    );
  });

  test("spreads over the whole of its 40 %", () => {
    expect(retryInMs({ attempts: 1, retryAfterMs: null, random: 0 })).toBe(4_000);
    expect(retryInMs({ attempts: 1, retryAfterMs: null, random: 1 })).toBe(6_000);
  });

  test("is never earlier than Retry-After asks, up to an hour, and never put off by more", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.nat(10 * DAY), between0And1, (attempts, retryAfterMs, random) => {
        const waitMs = retryInMs({ attempts, retryAfterMs, random }) ?? 0;
        const plannedMs = retryInMs({ attempts, retryAfterMs: null, random }) ?? 0;
        expect(waitMs).toBe(Math.max(plannedMs, Math.min(retryAfterMs, HOUR)));
      }),
    );
  });
});

/** What came of attempts, one after another, each so long after the one before. */
const history = fc.array(fc.record({ succeeded: fc.boolean(), afterMs: fc.nat(20 * MINUTE) }), { maxLength: 60 });

function run(steps: readonly { readonly succeeded: boolean; readonly afterMs: number }[]): {
  readonly state: BreakerState;
  readonly nowMs: number;
} {
  let state: BreakerState = CLOSED;
  let nowMs = 0;
  for (const { succeeded, afterMs } of steps) {
    nowMs += afterMs;
    // Nothing is sent while it is open.
    if (breaking(state, nowMs) === "open") continue;
    state = succeeded ? CLOSED : afterFailure(state, nowMs);
  }
  return { state, nowMs };
}

const failures = (count: number, state: BreakerState = CLOSED, nowMs = 0): BreakerState =>
  Array.from({ length: count }).reduce<BreakerState>((known) => afterFailure(known, nowMs), state);

describe("the breaker", () => {
  test("opens at the fifth failure in a row, for 30 s, then 60 s, up to 15 min", () => {
    expect(breaking(failures(4), 0)).toBe("closed");
    let state = failures(5);
    let nowMs = 0;
    for (const openMs of [30, 60, 120, 240, 480, 900, 900].map((seconds) => seconds * SECOND)) {
      expect(state.openUntilMs).toBe(nowMs + openMs);
      expect(breaking(state, nowMs + openMs - 1)).toBe("open");
      nowMs += openMs;
      expect(breaking(state, nowMs)).toBe("half_open");
      state = afterFailure(state, nowMs);
    }
  });

  test("lets nothing through while open, one probe when half open, and never more than could fail before it opens", () => {
    fc.assert(
      fc.property(history, fc.nat(6), fc.nat(20 * MINUTE), (steps, inFlight, laterMs) => {
        const { state, nowMs } = run(steps);
        const room = roomOf(state, inFlight, nowMs + laterMs);
        const now = breaking(state, nowMs + laterMs);
        const bound = { open: 0, half_open: 1, closed: SIGNER_LIMITS.inFlightPerEndpoint }[now];
        if (now !== "closed") expect(room).toBe(Math.max(0, bound - inFlight));
        if (now !== "closed") return;
        expect(room + inFlight).toBeLessThanOrEqual(Math.max(inFlight, SIGNER_LIMITS.inFlightPerEndpoint));
        expect(room === 0 || state.consecutiveFailures + inFlight + room <= SIGNER_LIMITS.failuresToOpen).toBe(true);
      }),
    );
  });

  test("is closed by any success, and is not opened for longer by what was under way when it opened", () => {
    fc.assert(
      fc.property(history, (steps) => {
        expect(run([...steps, { succeeded: true, afterMs: HOUR }]).state).toEqual(CLOSED);
      }),
    );
    const open = failures(5);
    expect(failures(3, open, 5 * SECOND).openUntilMs).toBe(open.openUntilMs);
  });

  test("disables after five days and twenty failures without a success, by neither alone, and at once by 410", () => {
    const failing = (count: number, forMs: number): string | undefined =>
      disabledBy(failures(count), { status: 500, nowMs: forMs });
    expect(failing(19, 6 * DAY)).toBeUndefined();
    expect(failing(20, 5 * DAY - 1)).toBeUndefined();
    expect(failing(20, 5 * DAY)).toBe("failing");
    expect(disabledBy(failures(1), { status: 410, nowMs: 0 })).toBe("gone");
    expect(disabledBy(CLOSED, { status: null, nowMs: 10 * DAY })).toBeUndefined();
  });
});

describe("what is read ahead", () => {
  const endpoint = {
    endpoint_id: 1,
    url: "https://example.com/",
    mode: "test",
    generation: 1,
    consecutive_failures: 0,
    times_opened: 0,
    open_until: null,
    failing_since: null,
    failures_since_success: 0,
    has_succeeded: true,
  } as const;
  const due = (delivery_id: number): Waiting => ({
    delivery_id,
    endpoint_id: 1,
    body: "{}",
    attempts: 0,
    manual_attempts: 0,
    asked: 0,
    is_manual: false,
    lapses_in_ms: null,
    lapsesAtMs: null,
    lapsesAtWallMs: null,
    due_at_ms: 0,
  });
  const send = (work: EndpointWork, count: number, tookMs: number): void => {
    for (let at = 0; at < count; at += 1) {
      const { delivery_id: deliveryId } = work.start();
      work.ended({ succeeded: true, status: 200, tookMs }, 0);
      work.putDown(deliveryId);
    }
  };

  test("is much for a fast endpoint, little for a slow one, and little for all when much is in hand", () => {
    const { firstWindow, longestWindow, inHand, fastMs } = SIGNER_LIMITS;
    const all = { count: 0 };
    const work = new EndpointWork(endpoint, all);
    expect(work.wanted(0)).toBe(firstWindow);
    work.filled(
      Array.from({ length: 20 }, (_, at) => due(at + 1)),
      20,
    );
    expect(all.count).toBe(20);
    send(work, 10, 1);
    expect(work.wanted(0)).toBe(longestWindow - 10);
    all.count += inHand;
    expect(work.wanted(0)).toBe(0);
    all.count -= inHand;
    send(work, 10, fastMs);
    expect(work.wanted(0)).toBe(firstWindow);
    expect(all.count).toBe(0);
  });

  test("is put down when it cannot be sent, and when the owner is somebody else's", () => {
    const all = { count: 0 };
    const work = new EndpointWork(endpoint, all);
    work.filled([due(1), due(2), due(3)], 4);
    work.start();
    work.withdraw();
    work.putDownUnsendable(0);
    expect([...work.inHand]).toEqual([1]);
    expect(all.count).toBe(1);
    work.letGo();
    expect(all.count).toBe(0);
  });
});

describe("places", () => {
  const never = (): void => expect.unreachable("nobody was to be called");

  test("are never more than there are, and some are kept for each kind that is not slow", () => {
    const slots = new Slots({ count: 6, keptForPrompt: 2, keptForUntried: 1 });
    const take = (pace: Pace, count: number) => Array.from({ length: count }, () => slots.take(pace));
    expect(take("slow", 4)).toEqual([true, true, true, false]);
    expect(take("untried", 2)).toEqual([true, false]);
    expect(take("prompt", 3)).toEqual([true, true, false]);
  });

  test("are for anybody where nobody else's are kept, and what is kept is kept however others come and go", () => {
    const pace = fc.constantFrom<Pace>("prompt", "untried", "slow");
    fc.assert(
      fc.property(fc.array(fc.tuple(pace, fc.boolean()), { maxLength: 80 }), (steps) => {
        const slots = new Slots({ count: 10, keptForPrompt: 3, keptForUntried: 2 });
        const taken = { prompt: 0, untried: 0, slow: 0 };
        for (const [one, isTaking] of steps) {
          if (isTaking && slots.take(one)) taken[one] += 1;
          else if (!isTaking && taken[one] > 0) {
            taken[one] -= 1;
            slots.give(one);
          }
          expect(taken.prompt + taken.untried + taken.slow).toBeLessThanOrEqual(10);
          expect(taken.slow).toBeLessThanOrEqual(5);
          expect(slots.hasRoom("prompt") || taken.prompt >= 3).toBe(true);
          expect(slots.hasRoom("untried") || taken.untried >= 2).toBe(true);
        }
      }),
    );
  });

  test("go to those who wait for one, the prompt ones first, and on to the next when one does not want it", () => {
    const slots = new Slots({ count: 2, keptForPrompt: 1, keptForUntried: 0 });
    const called: string[] = [];
    slots.take("prompt", never);
    slots.take("prompt", never);
    slots.take("slow", () => void called.push("slow"));
    slots.take("prompt", () => void called.push("first"));
    slots.take("prompt", () => {
      called.push("second");
      slots.take("prompt", never);
    });
    slots.give("prompt");
    expect(called).toEqual(["first", "second"]);
    slots.give("prompt");
    expect(called).toEqual(["first", "second", "slow"]);
  });

  test("call nobody who has gone", () => {
    const slots = new Slots({ count: 1, keptForPrompt: 0, keptForUntried: 0 });
    slots.take("prompt", never);
    slots.take("slow", never);
    slots.forget(never);
    slots.give("prompt");
  });
});

describe("a signature", () => {
  test("is what the contract says for each live secret, the newest first", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 2 }),
        fc.json(),
        fc.nat(4e12),
        (secrets, body, nowMs) => {
          const header = signatureHeader(secrets, { body, nowMs });
          const { t, v1 } = parseSignature(header);
          expect(t).toBe(Math.floor(nowMs / 1_000));
          expect(v1).toEqual(secrets.map((secret) => expectedSignature(secret, t, body)));
        },
      ),
    );
  });

  test("is over an envelope whose fields have one order", () => {
    const body = envelope({
      deliveryId: 7,
      eventType: "robotics.paused",
      createdAt: "2026-01-01T00:00:00.000Z",
      payload: {},
    });
    expect(body).toBe(
      '{"delivery_id":7,"event_type":"robotics.paused","created_at":"2026-01-01T00:00:00.000Z","payload":{}}',
    );
  });
});
