/** The station lease: every state, every event, by the holder and by another cashier. */
import { describe, expect, it } from "vitest";
import { type LeaseEvent, type LeaseHolder, type LeaseState, leaseMachine } from "../../machines/lease.ts";
import { take } from "../../machines/pure-transition.ts";
import { holdsItsTable, type TransitionTable } from "./transition-table.ts";

type LeaseEventType = LeaseEvent["type"];
const CASEY: LeaseHolder = { cashierId: 31, cashierName: "Casey", acquiredAtMs: 1_000, expiresAtMs: 61_000 };
const ROBIN: LeaseHolder = { cashierId: 32, cashierName: "Robin", acquiredAtMs: 2_000, expiresAtMs: 62_000 };

const eventOf = (by: LeaseHolder): Record<LeaseEventType, LeaseEvent> => ({
  ACQUIRE: { type: "ACQUIRE", holder: by },
  RENEW: { type: "RENEW", cashierId: by.cashierId, expiresAtMs: 99_000 },
  RELEASE: { type: "RELEASE", cashierId: by.cashierId },
  LAPSE: { type: "LAPSE" },
});

/** Casey holds the lease in `held`; each table says who asks. */
const TABLES: Record<"the holder" | "another cashier", TransitionTable<LeaseState, LeaseEventType>> = {
  "the holder": {
    free: { ACQUIRE: "held", RENEW: "not taken", RELEASE: "not taken", LAPSE: "not taken" },
    held: { ACQUIRE: "held", RENEW: "held", RELEASE: "free", LAPSE: "free" },
  },
  "another cashier": {
    free: { ACQUIRE: "held", RENEW: "not taken", RELEASE: "not taken", LAPSE: "not taken" },
    held: { ACQUIRE: "not taken", RENEW: "not taken", RELEASE: "not taken", LAPSE: "free" },
  },
};

for (const [who, by] of [
  ["the holder", CASEY],
  ["another cashier", ROBIN],
] as const) {
  holdsItsTable({
    name: `lease asked by ${who}`,
    machine: leaseMachine,
    contextIn: (state: LeaseState) => ({ holder: state === "held" ? CASEY : null }),
    event: (type: LeaseEventType) => eventOf(by)[type],
    table: TABLES[who],
  });
}

describe("a held lease", () => {
  it("keeps its name and its beginning when it is renewed", () => {
    const renewed = take(leaseMachine, { value: "held", context: { holder: CASEY } }, eventOf(CASEY).RENEW);
    expect(renewed?.context.holder).toEqual({ ...CASEY, expiresAtMs: 99_000 });
  });

  it("is extended, not begun anew, when its holder acquires it again", () => {
    const again = { ...CASEY, acquiredAtMs: 5_000, expiresAtMs: 65_000 };
    const extended = take(
      leaseMachine,
      { value: "held", context: { holder: CASEY } },
      { type: "ACQUIRE", holder: again },
    );
    expect(extended?.context.holder).toEqual({ ...CASEY, expiresAtMs: 65_000 });
  });

  it("leaves no holder behind when it lapses", () => {
    const lapsed = take(leaseMachine, { value: "held", context: { holder: CASEY } }, { type: "LAPSE" });
    expect(lapsed).toEqual({ value: "free", context: { holder: null } });
  });
});
