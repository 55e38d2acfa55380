/** The breaker of a webhook endpoint: every state, every event, and when it opens, closes and disables. */
import * as fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import {
  afterFailure,
  BREAKER_RULES,
  BREAKINGS,
  type BreakerState,
  type Breaking,
  breaking,
  CLOSED,
  disabledBy,
  roomOf,
} from "../../machines/webhook-breaker.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

type BreakerEvent = "SUCCEED" | "FAIL" | "FAIL often" | "WAIT";
/** `FAIL often` is the fifth failure in a row. `WAIT` is the end of the time for which the breaker is open. */
const TABLE: Record<Breaking, Record<BreakerEvent, Breaking>> = {
  closed: { SUCCEED: "closed", FAIL: "closed", "FAIL often": "open", WAIT: "closed" },
  open: { SUCCEED: "closed", FAIL: "open", "FAIL often": "open", WAIT: "half_open" },
  half_open: { SUCCEED: "closed", FAIL: "open", "FAIL often": "open", WAIT: "half_open" },
};

describe("the table of the breaker", () => {
  const NOW = 1_000_000;
  const stateIn = (now: Breaking): BreakerState => {
    if (now === "closed") return CLOSED;
    return { ...CLOSED, timesOpened: 1, openUntilMs: now === "open" ? NOW + 1 : NOW, consecutiveFailures: 5 };
  };
  const after = (state: BreakerState, event: BreakerEvent): Breaking => {
    if (event === "SUCCEED") return breaking(CLOSED, NOW);
    if (event === "WAIT") return breaking(state, (state.openUntilMs ?? NOW) + 1);
    const failures = event === "FAIL" ? state.consecutiveFailures : BREAKER_RULES.failuresToOpen - 1;
    return breaking(afterFailure({ ...state, consecutiveFailures: failures }, NOW), NOW);
  };
  for (const now of BREAKINGS) {
    for (const [event, expected] of Object.entries(TABLE[now]) as [BreakerEvent, Breaking][]) {
      it(`${now} × ${event} → ${expected}`, () => {
        expect(breaking(stateIn(now), NOW)).toBe(now);
        expect(after(stateIn(now), event)).toBe(expected);
      });
    }
  }
});

/** The results of attempts in their order, each with the time since the attempt before. */
const history = fc.array(fc.record({ succeeded: fc.boolean(), afterMs: fc.nat(20 * MINUTE) }), { maxLength: 60 });

function run(steps: readonly { readonly succeeded: boolean; readonly afterMs: number }[]): {
  readonly state: BreakerState;
  readonly nowMs: number;
} {
  let state: BreakerState = CLOSED;
  let nowMs = 0;
  for (const { succeeded, afterMs } of steps) {
    nowMs += afterMs;
    // An open breaker allows no attempt.
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

  test("open: no attempt; half open: one probe; closed: never more than could fail before it opens", () => {
    fc.assert(
      fc.property(history, fc.nat(6), fc.nat(20 * MINUTE), (steps, inFlight, laterMs) => {
        const { state, nowMs } = run(steps);
        const room = roomOf(state, inFlight, nowMs + laterMs);
        const now = breaking(state, nowMs + laterMs);
        const bound = { open: 0, half_open: 1, closed: BREAKER_RULES.inFlightPerEndpoint }[now];
        if (now !== "closed") expect(room).toBe(Math.max(0, bound - inFlight));
        if (now !== "closed") return;
        expect(room + inFlight).toBeLessThanOrEqual(Math.max(inFlight, BREAKER_RULES.inFlightPerEndpoint));
        expect(room === 0 || state.consecutiveFailures + inFlight + room <= BREAKER_RULES.failuresToOpen).toBe(true);
      }),
    );
  });

  test("M64 any success closes it, and attempts from before it opened do not open it for longer", () => {
    fc.assert(
      fc.property(history, (steps) => {
        expect(run([...steps, { succeeded: true, afterMs: HOUR }]).state).toEqual(CLOSED);
      }),
    );
    const open = failures(5);
    expect(failures(3, open, 5 * SECOND).openUntilMs).toBe(open.openUntilMs);
  });

  test("M65 disables after five days and twenty failures without a success (both are needed), and at once after a 410", () => {
    const failing = (count: number, forMs: number): string | undefined =>
      disabledBy(failures(count), { status: 500, nowMs: forMs });
    expect(failing(19, 6 * DAY)).toBeUndefined();
    expect(failing(20, 5 * DAY - 1)).toBeUndefined();
    expect(failing(20, 5 * DAY)).toBe("failing");
    expect(disabledBy(failures(1), { status: 410, nowMs: 0 })).toBe("gone");
    expect(disabledBy(CLOSED, { status: null, nowMs: 10 * DAY })).toBeUndefined();
  });
});
