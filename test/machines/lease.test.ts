/** The station lease: every state, every event, by the holder and by another cashier. */
import { describe, expect, it } from "vitest";
import { type LeaseEvent, type LeaseHolder, type LeaseState, leaseMachine } from "../../machines/lease.ts";
import { take } from "../../machines/pure-transition.ts";
import { holdsItsTable, type TransitionTable } from "./transition-table.ts";

type LeaseEventType = LeaseEvent["type"];
const CASEY: LeaseHolder = {
  cashierId: 31,
  cashierName: "Casey",
  sessionId: 61,
  acquiredAtMs: 1_000,
  expiresAtMs: 61_000,
};
const ROBIN: LeaseHolder = {
  cashierId: 32,
  cashierName: "Robin",
  sessionId: 62,
  acquiredAtMs: 2_000,
  expiresAtMs: 62_000,
};
const HELD = { value: "held", context: { holder: CASEY, lost: null } };

const eventOf = (by: LeaseHolder): Record<LeaseEventType, LeaseEvent> => ({
  ACQUIRE: { type: "ACQUIRE", holder: by },
  TAKE_OVER: { type: "TAKE_OVER", holder: by, fromCashierId: CASEY.cashierId },
  RENEW: { type: "RENEW", cashierId: by.cashierId, sessionId: by.sessionId, expiresAtMs: 99_000 },
  RELEASE: { type: "RELEASE", cashierId: by.cashierId },
  END: { type: "END", sessionIds: [60, by.sessionId ?? 0] },
  BREAK: { type: "BREAK", byName: "Olga", atMs: 5_000 },
  LAPSE: { type: "LAPSE" },
});

const NOTHING = {
  ACQUIRE: "not taken",
  TAKE_OVER: "not taken",
  RENEW: "not taken",
  RELEASE: "not taken",
  END: "not taken",
  BREAK: "not taken",
  LAPSE: "not taken",
} as const;
const FREE = { ...NOTHING, ACQUIRE: "held" } as const;
/** Casey holds the lease in `held`; each table names who asks. */
const TABLES: Record<"the holder" | "another cashier", TransitionTable<LeaseState, LeaseEventType>> = {
  "the holder": {
    free: FREE,
    held: { ...NOTHING, ACQUIRE: "held", RENEW: "held", RELEASE: "free", END: "free", BREAK: "free", LAPSE: "free" },
  },
  "another cashier": { free: FREE, held: { ...NOTHING, TAKE_OVER: "held", BREAK: "free", LAPSE: "free" } },
};

for (const [who, by] of [
  ["the holder", CASEY],
  ["another cashier", ROBIN],
] as const) {
  holdsItsTable({
    name: `lease asked by ${who}`,
    machine: leaseMachine,
    contextIn: (state: LeaseState) => ({ holder: state === "held" ? CASEY : null, lost: null }),
    event: (type: LeaseEventType) => eventOf(by)[type],
    table: TABLES[who],
  });
}

describe("a held lease", () => {
  it("renewal: it keeps its holder and its beginning, and is bound to the renewing session", () => {
    const renewal: LeaseEvent = { type: "RENEW", cashierId: 31, sessionId: 69, expiresAtMs: 99_000 };
    expect(take(leaseMachine, HELD, renewal)?.context.holder).toEqual({ ...CASEY, sessionId: 69, expiresAtMs: 99_000 });
  });

  it("acquired again by its holder: it is extended and does not begin again", () => {
    const again = { ...CASEY, sessionId: 69, acquiredAtMs: 5_000, expiresAtMs: 65_000 };
    const extended = take(leaseMachine, HELD, { type: "ACQUIRE", holder: again });
    expect(extended?.context.holder).toEqual({ ...CASEY, sessionId: 69, expiresAtMs: 65_000 });
  });

  it("lapse: the station is free, and no loss is kept", () => {
    expect(take(leaseMachine, HELD, { type: "LAPSE" })).toEqual({
      value: "free",
      context: { holder: null, lost: null },
    });
  });

  it("take-over: the lease of the new holder begins, and the loss of the first holder is kept with both names", () => {
    expect(take(leaseMachine, HELD, eventOf(ROBIN).TAKE_OVER)?.context).toEqual({
      holder: ROBIN,
      lost: { cashierId: 31, cashierName: "Casey", reason: "taken_over", byName: "Robin", atMs: 2_000 },
    });
  });

  it("take-over from a cashier who does not hold it: refused", () => {
    expect(take(leaseMachine, HELD, { type: "TAKE_OVER", holder: ROBIN, fromCashierId: 33 })).toBeUndefined();
  });

  it("break: the loss of its holder is kept until the station is acquired again", () => {
    const broken = take(leaseMachine, HELD, eventOf(CASEY).BREAK) ?? expect.unreachable();
    const lost = { cashierId: 31, cashierName: "Casey", reason: "broken", byName: "Olga", atMs: 5_000 };
    expect(broken.context).toEqual({ holder: null, lost });
    expect(take(leaseMachine, broken, eventOf(ROBIN).ACQUIRE)?.context).toEqual({ holder: ROBIN, lost: null });
  });

  it("bound to no session: no session's end releases it", () => {
    const unbound = { value: "held", context: { holder: { ...CASEY, sessionId: null }, lost: null } };
    expect(take(leaseMachine, unbound, eventOf(CASEY).END)).toBeUndefined();
  });
});
