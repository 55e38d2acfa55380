/** The payment intent: every state, every event, every route. */
import { describe, expect, it } from "vitest";
import {
  type Attestation,
  INTENT_STATES,
  type IntentEvent,
  type IntentRecord,
  type IntentState,
  isEnded,
  paymentIntentMachine,
  type Report,
  ROUTES,
  type Route,
  wireStatus,
} from "../../machines/payment-intent.ts";
import { take } from "../../machines/pure-transition.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { holdsItsTable, type TransitionTable } from "./transition-table.ts";

type IntentEventType = IntentEvent["type"];
type Table = TransitionTable<IntentState, IntentEventType>;

const NOTHING = {
  PRESENT: "not taken",
  REPORT: "not taken",
  ATTEST: "not taken",
  SETTLED: "not taken",
  REFUSED: "not taken",
  CANCEL: "not taken",
  EXPIRE: "not taken",
} as const;

/** Routes whose attestation needs a device's (or a provider's) evidence. */
const BY_EVIDENCE: Table = {
  created: {
    PRESENT: "presented",
    REPORT: "processing",
    ATTEST: "not taken",
    SETTLED: "succeeded",
    REFUSED: "not taken",
    CANCEL: "cancelled",
    EXPIRE: "expired",
  },
  presented: {
    PRESENT: "not taken",
    REPORT: "processing",
    ATTEST: "not taken",
    SETTLED: "succeeded",
    REFUSED: "not taken",
    CANCEL: "cancelled",
    EXPIRE: "expired",
  },
  processing: {
    PRESENT: "not taken",
    REPORT: "processing",
    ATTEST: "settling",
    SETTLED: "succeeded",
    REFUSED: "not taken",
    CANCEL: "cancelled",
    EXPIRE: "expired",
  },
  settling: {
    PRESENT: "not taken",
    REPORT: "settling",
    ATTEST: "not taken",
    SETTLED: "succeeded",
    REFUSED: "processing",
    CANCEL: "not taken",
    EXPIRE: "not taken",
  },
  succeeded: NOTHING,
  cancelled: NOTHING,
  expired: NOTHING,
};

/** Routes that a cashier attests at once: the money or the terminal's slip is in their hand. */
const DIRECT: Table = {
  ...BY_EVIDENCE,
  created: { ...BY_EVIDENCE.created, ATTEST: "settling" },
  settling: { ...BY_EVIDENCE.settling, REFUSED: "created" },
};

const TABLES: Record<Route, Table> = {
  smart_pos: BY_EVIDENCE,
  dynamic_qr: BY_EVIDENCE,
  attested_terminal: DIRECT,
  cash: DIRECT,
};

const CREATED_AT_MS = Date.UTC(2026, 10, 21, 12);
const report = (outcome: Report["outcome"] = "reported_success", providerReference = "RRN-1"): Report => ({
  deviceId: 701,
  outcome,
  providerReference,
  providerCode: "00",
  reportedAtMs: CREATED_AT_MS + 2_000,
});
const ATTESTATION: Attestation = {
  commandId: "attest-1",
  cashierId: 31,
  cashierName: "Casey",
  reference: "RRN-1",
  atMs: CREATED_AT_MS + 3_000,
  transactionId: null,
};
const EVENTS: Record<IntentEventType, IntentEvent> = {
  PRESENT: { type: "PRESENT", atMs: CREATED_AT_MS + 1_000 },
  REPORT: { type: "REPORT", report: report() },
  ATTEST: { type: "ATTEST", attestation: ATTESTATION },
  SETTLED: { type: "SETTLED", atMs: CREATED_AT_MS + 4_000, transactionId: 9 },
  REFUSED: { type: "REFUSED" },
  CANCEL: { type: "CANCEL", atMs: CREATED_AT_MS + 4_000 },
  EXPIRE: { type: "EXPIRE", atMs: CREATED_AT_MS + 180_000 },
};

function created(route: Route): IntentRecord {
  const isHandedOver = route === "smart_pos";
  return {
    intentId: 1001,
    displayNumber: 1,
    route,
    orderId: 501,
    orderDisplayNumber: 7,
    amountMinor: "1250",
    currency: "EUR",
    stationName: "Counter 1",
    deviceId: isHandedOver ? 701 : null,
    handoffTarget: isHandedOver ? "posapp://collect" : "",
    createdBy: 31,
    createdAtMs: CREATED_AT_MS,
    expiresAtMs: CREATED_AT_MS + 180_000,
    presentedAtMs: null,
    reports: [],
    reportCount: 0,
    attestation: null,
    endedAtMs: null,
  };
}

/** The record as it is when an intent of this route is in this state by the ordinary way. */
function recordIn(route: Route, state: IntentState): IntentRecord {
  const way: Record<IntentState, readonly IntentEventType[]> = {
    created: [],
    presented: ["PRESENT"],
    processing: ["PRESENT", "REPORT"],
    settling: TABLES[route].created.ATTEST === "settling" ? ["ATTEST"] : ["PRESENT", "REPORT", "ATTEST"],
    succeeded: ["SETTLED"],
    cancelled: ["CANCEL"],
    expired: ["EXPIRE"],
  };
  return walk(created(route), way[state]).context;
}

function walk(record: IntentRecord, way: readonly IntentEventType[]) {
  let at = { value: "created", context: record };
  for (const type of way) {
    const next = take(paymentIntentMachine, at, EVENTS[type]);
    if (next === undefined) throw new Error(`The way leads over ${type} in ${at.value}, which is not taken.`);
    at = next;
  }
  return at;
}

for (const route of ROUTES) {
  holdsItsTable({
    name: `payment intent on the route ${route}`,
    machine: paymentIntentMachine,
    contextIn: (state: IntentState) => recordIn(route, state),
    event: (type: IntentEventType) => EVENTS[type],
    table: TABLES[route],
  });
}

describe("what an intent remembers", () => {
  it("goes back to presented when the seam refuses what was attested without a report", () => {
    const from = { value: "settling", context: { ...recordIn("smart_pos", "presented"), attestation: ATTESTATION } };
    expect(take(paymentIntentMachine, from, EVENTS.REFUSED)).toMatchObject({
      value: "presented",
      context: { attestation: null },
    });
  });

  it("goes to processing when a report came while the seam was at work and the seam then refused", () => {
    const settling = walk(created("smart_pos"), ["REPORT", "ATTEST", "REPORT", "REFUSED"]);
    expect(settling).toMatchObject({ value: "processing", context: { reportCount: 2, attestation: null } });
  });

  it("keeps the newest reports and counts all of them", () => {
    const way = Array.from({ length: STATE_LIMITS.activeReports + 3 }, (): IntentEventType => "REPORT");
    const { context } = walk(created("smart_pos"), way);
    expect(context.reports).toHaveLength(STATE_LIMITS.activeReports);
    expect(context.reportCount).toBe(STATE_LIMITS.activeReports + 3);
  });

  it("keeps the newest report only once it has ended", () => {
    const reported = walk(created("smart_pos"), ["REPORT"]);
    const declined = take(paymentIntentMachine, reported, { type: "REPORT", report: report("reported_declined", "B") });
    const ended = declined === undefined ? undefined : take(paymentIntentMachine, declined, EVENTS.CANCEL);
    expect(ended?.context.reports.map((kept) => kept.outcome)).toEqual(["reported_declined"]);
    expect(ended?.context.reportCount).toBe(2);
  });

  it("names its transaction once settled, and forgets which command asked", () => {
    const { context } = walk(created("cash"), ["ATTEST", "SETTLED"]);
    expect(context.attestation).toEqual({ ...ATTESTATION, commandId: "", transactionId: 9 });
    expect(context.endedAtMs).toBe(CREATED_AT_MS + 4_000);
  });

  it("takes over what the seam recorded when its own attestation was lost, and only then", () => {
    const attestation = { cashierId: 5, cashierName: "Eva", reference: "slip", atMs: CREATED_AT_MS + 3_000 };
    const settled = { type: "SETTLED", atMs: CREATED_AT_MS + 4_000, transactionId: 9, attestation } as const;
    const lost = take(paymentIntentMachine, walk(created("smart_pos"), ["REPORT"]), settled);
    expect(lost).toMatchObject({ value: "succeeded" });
    expect(lost?.context.attestation).toEqual({ ...attestation, commandId: "", transactionId: 9 });
    const known = take(paymentIntentMachine, walk(created("cash"), ["ATTEST"]), settled);
    expect(known?.context.attestation).toEqual({ ...ATTESTATION, commandId: "", transactionId: 9 });
  });
});

describe("what is shown outside", () => {
  const SHOWN: Record<IntentState, readonly [status: string, ended: boolean]> = {
    created: ["created", false],
    presented: ["presented", false],
    processing: ["processing", false],
    settling: ["processing", false],
    succeeded: ["succeeded", true],
    cancelled: ["cancelled", true],
    expired: ["expired", true],
  };
  it.each(INTENT_STATES)("%s has its wire status and its finality", (state) => {
    expect([wireStatus(state), isEnded(state)]).toEqual(SHOWN[state]);
  });
});
