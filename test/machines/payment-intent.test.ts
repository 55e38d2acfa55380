/** The payment intent: every state, every event, every route. */
import { describe, expect, it } from "vitest";
import { digestOf } from "../../machines/digest.ts";
import { type IntentEvent, paymentIntentMachine } from "../../machines/intent-machine.ts";
import {
  type Attestation,
  INTENT_STATES,
  type IntentRecord,
  type IntentState,
  isEnded,
  ORDER_OBSTACLES,
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
  QR_READY: "not taken",
  CONFIRM: "not taken",
  FAIL: "not taken",
  OVERTAKEN: "not taken",
  MARK: "not taken",
  CLEAR: "not taken",
} as const;

/** Routes whose attestation needs a device's evidence. */
const BY_EVIDENCE: Table = {
  created: {
    ...NOTHING,
    PRESENT: "presented",
    REPORT: "processing",
    SETTLED: "succeeded",
    CANCEL: "cancelled",
    EXPIRE: "expired",
    OVERTAKEN: "cancelled",
    MARK: "created",
  },
  presented: {
    ...NOTHING,
    REPORT: "processing",
    SETTLED: "succeeded",
    CANCEL: "cancelled",
    EXPIRE: "expired",
    OVERTAKEN: "cancelled",
    MARK: "presented",
  },
  processing: {
    ...NOTHING,
    REPORT: "processing",
    ATTEST: "settling",
    SETTLED: "succeeded",
    CANCEL: "cancelled",
    EXPIRE: "expired",
    MARK: "processing",
  },
  settling: { ...NOTHING, REPORT: "settling", SETTLED: "succeeded", REFUSED: "processing", MARK: "settling" },
  succeeded: NOTHING,
  cancelled: NOTHING,
  expired: NOTHING,
};

/** The route that a provider confirms: no device fetches or reports, and the seam is asked after a confirmation only. */
const BY_PROVIDER: Table = {
  created: {
    ...NOTHING,
    CANCEL: "cancelled",
    EXPIRE: "expired",
    QR_READY: "presented",
    CONFIRM: "settling",
    FAIL: "cancelled",
    OVERTAKEN: "cancelled",
    MARK: "created",
    CLEAR: "created",
  },
  presented: {
    ...NOTHING,
    CANCEL: "cancelled",
    EXPIRE: "expired",
    CONFIRM: "settling",
    FAIL: "cancelled",
    OVERTAKEN: "cancelled",
    MARK: "presented",
    CLEAR: "presented",
  },
  processing: {
    ...NOTHING,
    ATTEST: "settling",
    SETTLED: "succeeded",
    CANCEL: "cancelled",
    EXPIRE: "expired",
    CONFIRM: "settling",
    MARK: "processing",
    CLEAR: "processing",
  },
  settling: { ...NOTHING, SETTLED: "succeeded", REFUSED: "processing", MARK: "settling", CLEAR: "settling" },
  succeeded: NOTHING,
  cancelled: NOTHING,
  expired: NOTHING,
};

/** Routes that a cashier attests at once: the cashier has the cash or the terminal's slip. */
const DIRECT: Table = {
  ...BY_EVIDENCE,
  created: { ...BY_EVIDENCE.created, ATTEST: "settling" },
  settling: { ...BY_EVIDENCE.settling, REFUSED: "created" },
};

const TABLES: Record<Route, Table> = {
  smart_pos: BY_EVIDENCE,
  dynamic_qr: BY_PROVIDER,
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
  key: "k",
});
const ATTESTATION: Attestation = {
  by: "cashier",
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
  CANCEL: { type: "CANCEL", atMs: CREATED_AT_MS + 4_000, key: "c" },
  EXPIRE: { type: "EXPIRE", atMs: CREATED_AT_MS + 180_000 },
  QR_READY: { type: "QR_READY", atMs: CREATED_AT_MS + 300, qrPayload: "000201", providerReference: "PAY-1" },
  CONFIRM: {
    type: "CONFIRM",
    atMs: CREATED_AT_MS + 9_000,
    attestation: { ...ATTESTATION, by: "provider", cashierId: 0, cashierName: "", reference: "PAY-1" },
    providerReference: "PAY-1",
  },
  FAIL: { type: "FAIL", atMs: CREATED_AT_MS + 500, reason: "provider_timed_out" },
  OVERTAKEN: { type: "OVERTAKEN", atMs: CREATED_AT_MS + 5_000, reason: "order_already_paid" },
  MARK: { type: "MARK", reason: "money_differs" },
  CLEAR: { type: "CLEAR" },
};

function created(route: Route): IntentRecord {
  const isHandedOver = route === "smart_pos";
  return {
    intentId: 1001,
    displayNumber: 1,
    route,
    orderId: 501,
    orderDisplayNumber: 7,
    orderRevision: 1,
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
    formerReports: [],
    reportCount: 0,
    attestation: null,
    provider:
      route === "dynamic_qr" ? { configId: 81, qrPayload: "", providerReference: "", confirmedAtMs: null } : null,
    moneyMayHaveMoved: "",
    reasonSinceEnd: "",
    endedAtMs: null,
    endReason: "",
    cancelKey: "",
  };
}

const QR_WAY: Record<IntentState, readonly IntentEventType[]> = {
  created: [],
  presented: ["QR_READY"],
  processing: ["QR_READY", "CONFIRM", "REFUSED"],
  settling: ["QR_READY", "CONFIRM"],
  succeeded: ["QR_READY", "CONFIRM", "SETTLED"],
  cancelled: ["FAIL"],
  expired: ["EXPIRE"],
};

/** The record of an intent of this route that reached this state by the usual steps. */
function recordIn(route: Route, state: IntentState): IntentRecord {
  if (route === "dynamic_qr") return walk(created(route), QR_WAY[state]).context;
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

describe("the record of an intent", () => {
  it("the seam refuses an attestation, and there is no report: the intent is presented again", () => {
    const from = { value: "settling", context: { ...recordIn("smart_pos", "presented"), attestation: ATTESTATION } };
    expect(take(paymentIntentMachine, from, EVENTS.REFUSED)).toMatchObject({
      value: "presented",
      context: { attestation: null },
    });
  });

  it("a report comes before the seam refuses: the intent is processing", () => {
    const settling = walk(created("smart_pos"), ["REPORT", "ATTEST", "REPORT", "REFUSED"]);
    expect(settling).toMatchObject({ value: "processing", context: { reportCount: 2, attestation: null } });
  });

  it("more reports than the bound: the newest are kept, and all are counted", () => {
    const way = Array.from({ length: STATE_LIMITS.activeReports + 3 }, (): IntentEventType => "REPORT");
    const { context } = walk(created("smart_pos"), way);
    expect(context.reports).toHaveLength(STATE_LIMITS.activeReports);
    expect(context.reportCount).toBe(STATE_LIMITS.activeReports + 3);
  });

  it("a report that money may have moved: kept after newer reports have displaced it, and no weaker reason replaces it", () => {
    const reported = (...outcomes: Report["outcome"][]) => {
      let at = walk(created("smart_pos"), []);
      for (const outcome of outcomes) {
        const next = take(paymentIntentMachine, at, { type: "REPORT", report: report(outcome, "") });
        if (next !== undefined) at = next;
      }
      return at.context;
    };
    const many = Array.from({ length: STATE_LIMITS.activeReports }, () => "reported_declined" as const);
    const unknown = reported("reported_unknown", ...many);
    expect(unknown.reports.map(({ outcome }) => outcome)).not.toContain("reported_unknown");
    expect(unknown.moneyMayHaveMoved).toBe("outcome_unknown");
    expect(reported("reported_success", "reported_unknown", ...many).moneyMayHaveMoved).toBe("success_reported");
    expect(reported("reported_unknown", "reported_success").moneyMayHaveMoved).toBe("success_reported");
    expect(reported(...many).moneyMayHaveMoved).toBe("");
  });

  it("an ended intent: only the newest reports are kept", () => {
    const references = Array.from({ length: STATE_LIMITS.endedReports + 1 }, (_, nth) => `R-${nth}`);
    let reported = walk(created("smart_pos"), []);
    for (const reference of references)
      reported =
        take(paymentIntentMachine, reported, { type: "REPORT", report: report("reported_declined", reference) }) ??
        reported;
    const ended = take(paymentIntentMachine, reported, EVENTS.CANCEL);
    expect(ended?.context.reports.map((kept) => kept.providerReference)).toEqual(references.slice(1));
    expect(ended?.context.reportCount).toBe(references.length);
  });

  it("a settled intent: the attestation has the transaction and the digest of its command", () => {
    const { context } = walk(created("cash"), ["ATTEST", "SETTLED"]);
    expect(context.attestation).toEqual({
      ...ATTESTATION,
      commandId: digestOf(ATTESTATION.commandId),
      transactionId: 9,
    });
    expect(context.endedAtMs).toBe(CREATED_AT_MS + 4_000);
  });

  it("the intent has lost its attestation: it adopts the seam's record; a known attestation stays", () => {
    const attestation = { cashierId: 5, cashierName: "Eva", reference: "slip", atMs: CREATED_AT_MS + 3_000 };
    const settled = { type: "SETTLED", atMs: CREATED_AT_MS + 4_000, transactionId: 9, attestation } as const;
    const lost = take(paymentIntentMachine, walk(created("smart_pos"), ["REPORT"]), settled);
    expect(lost).toMatchObject({ value: "succeeded" });
    expect(lost?.context.attestation).toEqual({ ...attestation, by: "cashier", commandId: "", transactionId: 9 });
    const known = take(paymentIntentMachine, walk(created("cash"), ["ATTEST"]), settled);
    expect(known?.context.attestation).toMatchObject({ reference: ATTESTATION.reference, transactionId: 9 });
  });
});

describe("an intent's record of its provider", () => {
  it("the intent has lost its confirmation: it settles only with the seam's record, which it adopts", () => {
    const attestation = { cashierId: 0, cashierName: "", reference: "PAY-1", atMs: CREATED_AT_MS + 3_000 };
    const settled = { type: "SETTLED", atMs: CREATED_AT_MS + 4_000, transactionId: 9 } as const;
    const presented = walk(created("dynamic_qr"), ["QR_READY"]);
    expect(take(paymentIntentMachine, presented, settled)).toBeUndefined();
    expect(take(paymentIntentMachine, presented, { ...settled, attestation })).toMatchObject({
      value: "succeeded",
      context: {
        provider: { confirmedAtMs: CREATED_AT_MS + 3_000, providerReference: "PAY-1", qrPayload: "" },
        attestation: { by: "provider", transactionId: 9 },
      },
    });
  });

  const provider = (way: readonly IntentEventType[]) => walk(created("dynamic_qr"), way).context.provider;

  it("the payload of the QR: kept only while the intent is presented", () => {
    expect(provider(["QR_READY"])).toMatchObject({ qrPayload: "000201", providerReference: "PAY-1" });
    for (const way of [
      ["QR_READY", "CONFIRM"],
      ["QR_READY", "CANCEL"],
      ["QR_READY", "EXPIRE"],
      ["QR_READY", "FAIL"],
      ["QR_READY", "CONFIRM", "REFUSED"],
    ] as const) {
      expect(provider(way)?.qrPayload, way.join(" → ")).toBe("");
    }
  });

  it("a second confirmation after a refusal: the time of the first one is kept", () => {
    const confirmed = walk(created("dynamic_qr"), ["CONFIRM", "REFUSED"]);
    const later = { ...EVENTS.CONFIRM, atMs: CREATED_AT_MS + 60_000 } as IntentEvent;
    const again = take(paymentIntentMachine, confirmed, later);
    expect(again).toMatchObject({
      value: "settling",
      context: { provider: { confirmedAtMs: CREATED_AT_MS + 9_000 }, attestation: { by: "provider" } },
    });
  });

  it("the provider ends it: the end has the provider's reason; an end by a cashier has none", () => {
    expect(walk(created("dynamic_qr"), ["FAIL"]).context.endReason).toBe("provider_timed_out");
    expect(walk(created("dynamic_qr"), ["CANCEL"]).context.endReason).toBe("");
  });

  it("the order is paid by another route: the intent ends and keeps why money may have moved", () => {
    const overtaken = (route: Route, way: readonly IntentEventType[]) => {
      const { endReason, moneyMayHaveMoved } = walk(created(route), [...way, "OVERTAKEN"]).context;
      return [endReason, moneyMayHaveMoved];
    };
    expect(overtaken("smart_pos", [])).toEqual(["order_already_paid", ""]);
    expect(overtaken("smart_pos", ["PRESENT"])).toEqual(["order_already_paid", "handoff_presented"]);
    expect(overtaken("dynamic_qr", ["QR_READY"])).toEqual(["order_already_paid", "qr_presented"]);
    expect(overtaken("dynamic_qr", ["QR_READY", "MARK"])).toEqual(["order_already_paid", "money_differs"]);
  });

  it.each(ROUTES)("on %s: it ends with its order, and with a changed amount only where a QR contains it", (route) => {
    const context = { value: "created", context: created(route) };
    for (const reason of ORDER_OBSTACLES) {
      const overtaken = take(paymentIntentMachine, context, { type: "OVERTAKEN", atMs: CREATED_AT_MS + 1, reason });
      const endsIt = reason !== "order_changed" || route === "dynamic_qr";
      expect(overtaken?.context.endReason, reason).toBe(endsIt ? reason : undefined);
    }
  });

  it("its provider has not confirmed: a cashier cannot attest it", () => {
    const unconfirmed = { value: "processing", context: created("dynamic_qr") };
    expect(take(paymentIntentMachine, unconfirmed, EVENTS.ATTEST)).toBeUndefined();
  });
});

describe("the wire status", () => {
  const SHOWN: Record<IntentState, readonly [status: string, ended: boolean]> = {
    created: ["created", false],
    presented: ["presented", false],
    processing: ["processing", false],
    settling: ["processing", false],
    succeeded: ["succeeded", true],
    cancelled: ["cancelled", true],
    expired: ["expired", true],
  };
  it.each(INTENT_STATES)("%s: the contract's status, and whether it is ended", (state) => {
    expect([wireStatus(state), isEnded(state)]).toEqual(SHOWN[state]);
  });
});
