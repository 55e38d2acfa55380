/** The JSON of a payment intent: the actions that it offers follow the machine, for each state and route. */
import { describe, expect, it } from "vitest";
import { decidedIntentJson, intentJson, intentSchema } from "../../../gateway/api/cashier/intent-json.ts";
import { leaseHolderJson } from "../../../gateway/api/cashier/leases.ts";
import { unclearCollections } from "../../../gateway/api/cashier/unclear-collections.ts";
import type {
  IntentState,
  PaymentIntent,
  ReportedOutcome,
  Route,
  UnclearReason,
} from "../../../machines/payment-intent.ts";
import { NO_KILL_SWITCHES, type StationStatus } from "../../../machines/standing.ts";
import type { OlderReason, OrderStatus, ShownOrder, UnclearCollection } from "../../../machines/station/state.ts";

const NOW_MS = Date.UTC(2026, 10, 20, 12);

const STATION = {
  organizationId: 1,
  stationId: 2,
  status: "active" as StationStatus,
  order: null,
  waitingOrders: [],
  knownOrders: [],
  unclearCollections: [] as UnclearCollection[],
  unclearForgottenThrough: 0,
  olderReasons: [],
};
const FACTS = { station: STATION, switches: NO_KILL_SWITCHES, nowMs: NOW_MS };

function intent(changes: Partial<PaymentIntent> = {}): PaymentIntent {
  return {
    intentId: 7,
    displayNumber: 3,
    route: "smart_pos",
    orderId: 42,
    orderDisplayNumber: 12,
    orderRevision: 2,
    amountMinor: "2500",
    currency: "EUR",
    stationName: "Counter 1",
    deviceId: 5,
    handoffTarget: "pay://collect",
    createdBy: 9,
    createdAtMs: NOW_MS - 10_000,
    expiresAtMs: NOW_MS + 170_000,
    presentedAtMs: null,
    reports: [],
    formerReports: [],
    reportCount: 0,
    attestation: null,
    provider: null,
    endedAtMs: null,
    moneyMayHaveMoved: "",
    reasonSinceEnd: "",
    endReason: "",
    cancelKey: "",
    status: "created",
    ...changes,
  };
}

const report = (outcome: ReportedOutcome) => ({
  deviceId: 5,
  outcome,
  providerReference: "R-1",
  providerCode: "00",
  reportedAtMs: NOW_MS - 1_000,
  key: "k",
});

type Offers = readonly [settle: boolean, cancel: boolean];

describe("the actions that an intent offers", () => {
  const table: Record<IntentState, Record<"smart_pos" | "cash" | "attested_terminal", Offers>> = {
    created: { smart_pos: [false, true], cash: [true, true], attested_terminal: [true, true] },
    presented: { smart_pos: [false, true], cash: [false, true], attested_terminal: [false, true] },
    processing: { smart_pos: [true, true], cash: [true, true], attested_terminal: [true, true] },
    settling: { smart_pos: [false, false], cash: [false, false], attested_terminal: [false, false] },
    succeeded: { smart_pos: [false, false], cash: [false, false], attested_terminal: [false, false] },
    cancelled: { smart_pos: [false, false], cash: [false, false], attested_terminal: [false, false] },
    expired: { smart_pos: [false, false], cash: [false, false], attested_terminal: [false, false] },
  };
  for (const [status, row] of Object.entries(table)) {
    it(`the state ${status}: settle and cancel as in the table, for each route`, () => {
      for (const [route, [settle, cancel]] of Object.entries(row)) {
        const wire = intentJson(intent({ status: status as IntentState, route: route as Route }), FACTS);
        expect([wire.settle_offered, wire.cancel_offered], route).toEqual([settle, cancel]);
      }
    });
  }

  it("a reported decline: settle is still offered (contract, rule 2 of the smart POS route)", () => {
    for (const outcome of ["reported_declined", "reported_cancelled", "reported_unknown"] as const) {
      const wire = intentJson(intent({ status: "processing", reports: [report(outcome)], reportCount: 1 }), FACTS);
      expect(wire.settle_offered, outcome).toBe(true);
    }
  });

  it("a deadline that has passed: no action, also before the expiry is committed", () => {
    const wire = intentJson(intent({ status: "processing", expiresAtMs: NOW_MS }), FACTS);
    expect([wire.settle_offered, wire.cancel_offered]).toEqual([false, false]);
  });

  it("an overdue QR that waits for the check of its confirmation: cancel, because nothing else ends it meanwhile", () => {
    for (const [status, confirmedAtMs, offers] of [
      ["created", null, [false, true]],
      ["presented", null, [false, true]],
      ["processing", NOW_MS - 1_000, [false, false]],
      ["settling", NOW_MS - 1_000, [false, false]],
    ] as const) {
      const provider = { configId: 81, qrPayload: "000201", providerReference: "PAY-1", confirmedAtMs };
      const overdue = intent({ route: "dynamic_qr", status, deviceId: null, provider, expiresAtMs: NOW_MS });
      const wire = intentJson(overdue, FACTS);
      expect([wire.settle_offered, wire.cancel_offered], status).toEqual(offers);
    }
  });
});

describe("the JSON of an intent", () => {
  it("during a call of the seam: `processing`, and it already names the attestation", () => {
    const attestation = {
      by: "cashier",
      commandId: "c",
      cashierId: 9,
      cashierName: "Ada",
      reference: "R-1",
      atMs: NOW_MS,
      transactionId: null,
    } as const;
    const wire = intentJson(intent({ status: "settling", attestation }), FACTS);
    expect(wire.status).toBe("processing");
    expect(wire.attestation).toEqual({
      by: "cashier",
      cashier_id: 9,
      cashier_name: "Ada",
      reference: "R-1",
      attested_at: "2026-11-20T12:00:00.000Z",
      transaction_id: null,
    });
  });

  describe("an intent whose order has changed", () => {
    const reported = intent({ status: "processing", reports: [report("reported_success")], reportCount: 1 });
    const order = (changes: Partial<ShownOrder>): ShownOrder => ({
      orderId: 42,
      orderDisplayNumber: 12,
      amountMinor: "2500",
      currency: "EUR",
      status: "open",
      revision: 3,
      shownAtMs: NOW_MS,
      ...changes,
    });
    const known = (status: OrderStatus) => ({ ...STATION, knownOrders: [{ orderId: 42, revision: 3, status }] });
    const OFFERED = [true, "", true];

    it.each([
      ["voided", known("voided"), [false, "order_voided", true]],
      ["paid in another way", known("paid"), [false, "order_already_paid", true]],
      ["of another amount", { ...STATION, order: order({ amountMinor: "3000" }) }, [false, "order_changed", true]],
      [
        "of another amount, behind another order",
        { ...STATION, waitingOrders: [order({ amountMinor: "3000" })] },
        [false, "order_changed", true],
      ],
      ["in another currency", { ...STATION, order: order({ currency: "USD" }) }, [false, "order_changed", true]],
      ["of the same amount again", { ...STATION, order: order({ revision: 9 }) }, OFFERED],
      [
        "received as it was before the intent",
        { ...STATION, order: order({ amountMinor: "1", revision: 2 }) },
        OFFERED,
      ],
      ["not the one that changed", { ...STATION, order: order({ orderId: 43, amountMinor: "1" }) }, OFFERED],
    ])("an order that is %s: whether settle is offered, and why not", (_what, station, offers) => {
      const wire = intentJson(reported, { ...FACTS, station });
      expect([wire.settle_offered, wire.settle_obstacle, wire.cancel_offered]).toEqual(offers);
    });

    it("an intent that has ended: the change is not shown", () => {
      const ended = intentJson({ ...reported, status: "succeeded" }, { ...FACTS, station: known("paid") });
      expect([ended.settle_offered, ended.settle_obstacle]).toEqual([false, ""]);
    });
  });

  describe("an intent whose order has an earlier unclear collection", () => {
    const provider = { configId: 81, qrPayload: "000201", providerReference: "PAY-1", confirmedAtMs: null };
    const qr = intent({ route: "dynamic_qr", status: "presented", deviceId: null, provider });
    const by = (unclear: Partial<UnclearCollection>) => ({
      ...FACTS,
      station: {
        ...STATION,
        unclearCollections: [
          { orderId: 42, intentId: 6, reason: "late_success", reasonNumber: 9, ...unclear } as UnclearCollection,
        ],
      },
    });
    it.each([
      [
        "reported since",
        {},
        [false, "money_may_have_moved", { reason: "late_success", earlier_intent_id: 6, reason_number: 9 }, ""],
      ],
      ["confirmed for it", { confirmedFor: 7 }, [true, "", null, "000201"]],
      [
        "confirmed for another intent",
        { confirmedFor: 5 },
        [false, "money_may_have_moved", { reason: "late_success", earlier_intent_id: 6, reason_number: 9 }, ""],
      ],
      ["of another order", { orderId: 43 }, [true, "", null, "000201"]],
    ])("a reason %s: settling and the QR follow the confirmation", (_what, unclear, expected) => {
      const cash = intentJson(intent({ route: "cash" }), by(unclear));
      const shown = intentJson(qr, by(unclear)).provider?.qr_payload;
      expect([cash.settle_offered, cash.settle_obstacle, cash.confirmation_needed, shown]).toEqual(expected);
    });

    it.each([
      ["a hand-off that no device has fetched", intent()],
      ["a hand-off at its device", intent({ status: "presented" })],
      ["a QR", qr],
    ])("%s: the confirmation is no obstacle to settling, because it cannot be settled yet", (_what, known) => {
      const { settle_offered, settle_obstacle, confirmation_needed } = intentJson(known, by({}));
      expect([settle_offered, settle_obstacle]).toEqual([false, ""]);
      expect(confirmation_needed).toEqual({ reason: "late_success", earlier_intent_id: 6, reason_number: 9 });
    });

    it("an intent that has ended: there is nothing to confirm", () => {
      expect(intentJson(intent({ status: "expired" }), by({}))).toMatchObject({
        settle_obstacle: "",
        confirmation_needed: null,
      });
    });
  });

  it("a QR whose deadline has passed: not shown, as on displays", () => {
    const provider = { configId: 81, qrPayload: "000201", providerReference: "PAY-1", confirmedAtMs: null };
    const overdue = {
      route: "dynamic_qr",
      status: "presented",
      deviceId: null,
      provider,
      expiresAtMs: NOW_MS,
    } as const;
    expect(intentJson(intent(overdue), FACTS).provider).toMatchObject({ qr_payload: "", provider_reference: "PAY-1" });
  });

  it("a frozen provider: no QR is shown", () => {
    const provider = { configId: 81, qrPayload: "000201", providerReference: "PAY-1", confirmedAtMs: null };
    const shown = intent({ route: "dynamic_qr", status: "presented", deviceId: null, provider });
    const frozen = (configId: number) => ({ ...NO_KILL_SWITCHES, providers: new Set([configId]) });
    expect(intentJson(shown, { ...FACTS, switches: frozen(82) }).provider?.qr_payload).toBe("000201");
    expect(intentJson(shown, { ...FACTS, switches: frozen(81) }).provider).toMatchObject({
      qr_payload: "",
      provider_reference: "PAY-1",
    });
  });

  it.each([
    ["its platform is frozen", { platform: true }, {}],
    ["its organization is frozen", { organizations: new Set([1]) }, {}],
    ["its station is frozen", { stations: new Set([2]) }, {}],
    ["its station is suspended", {}, { status: "suspended" as StationStatus }],
  ])("%s: no QR is shown, as on displays", (_what, on, standing) => {
    const provider = { configId: 81, qrPayload: "000201", providerReference: "PAY-1", confirmedAtMs: null };
    const shown = intent({ route: "dynamic_qr", status: "presented", deviceId: null, provider });
    const wire = intentJson(shown, {
      ...FACTS,
      station: { ...STATION, ...standing },
      switches: { ...NO_KILL_SWITCHES, ...on },
    });
    expect(wire.provider).toMatchObject({ qr_payload: "", provider_reference: "PAY-1" });
  });

  it("the answer to a decision: no QR is shown, because the gateway may not know the freezes", () => {
    const provider = { configId: 81, qrPayload: "000201", providerReference: "PAY-1", confirmedAtMs: null };
    const shown = intent({ route: "dynamic_qr", status: "presented", deviceId: null, provider });
    expect(decidedIntentJson(shown, STATION, NOW_MS).provider).toMatchObject({ qr_payload: "" });
  });

  describe("the reason why an intent's money may have moved", () => {
    const provider = { configId: 81, qrPayload: "000201", providerReference: "PAY-1", confirmedAtMs: null };
    const qr = intent({ route: "dynamic_qr", status: "presented", deviceId: null, provider });
    const withReasons = (...reasons: UnclearReason[]) => ({
      ...FACTS,
      station: {
        ...STATION,
        unclearCollections: reasons.map((reason) => ({ orderId: 42, intentId: 7, reason, reasonNumber: 1 })),
      },
    });
    const reasonOf = (known: PaymentIntent, facts = FACTS) => intentJson(known, facts).money_may_have_moved;

    it("a payment that differs: shown at once, and the QR is no longer returned", () => {
      expect(intentJson(qr, FACTS)).toMatchObject({ money_may_have_moved: "", provider: { qr_payload: "000201" } });
      const wire = intentJson({ ...qr, moneyMayHaveMoved: "money_differs" }, FACTS);
      expect(wire).toMatchObject({ money_may_have_moved: "money_differs", cancel_offered: true });
      expect(wire.provider).toMatchObject({ qr_payload: "", provider_reference: "PAY-1" });
    });

    it("after the intent's end: the reason from the evidence of its station, a differing payment first", () => {
      const ended = { ...qr, status: "expired", moneyMayHaveMoved: "money_differs", reasonSinceEnd: "" } as const;
      expect(reasonOf(ended)).toBe("");
      expect(reasonOf(ended, withReasons("late_evidence", "late_money"))).toBe("late_money");
      expect(reasonOf(ended, withReasons("money_differs", "late_money"))).toBe("money_differs");
      const other = {
        ...FACTS,
        station: {
          ...STATION,
          unclearCollections: [{ orderId: 42, intentId: 8, reason: "late_money", reasonNumber: 1 }],
        },
      };
      expect(reasonOf(ended, other as typeof FACTS)).toBe("");
    });

    it("its order was paid by another collection: the reason stays; the intent itself was paid: no reason", () => {
      const ended = { ...qr, status: "cancelled", reasonSinceEnd: "handoff_presented" } as const;
      expect(reasonOf({ ...ended, endReason: "order_already_paid" })).toBe("handoff_presented");
      expect(reasonOf({ ...ended, reasonSinceEnd: "late_success" })).toBe("late_success");
      expect(
        reasonOf({ ...ended, status: "succeeded", moneyMayHaveMoved: "money_differs" }, withReasons("late_money")),
      ).toBe("");
    });
  });

  describe("the unclear collections of a station", () => {
    const ended = intent({ status: "cancelled", reasonSinceEnd: "success_reported" });

    it("each with its strongest reason; paid ones and those without a reason are left out", () => {
      const paid = intent({ intentId: 8, status: "succeeded", moneyMayHaveMoved: "success_reported" });
      const clear = intent({ intentId: 6, status: "expired" });
      const known: UnclearCollection[] = [
        { orderId: 40, intentId: 3, reason: "late_evidence", reasonNumber: 1 },
        { orderId: 42, intentId: 7, reason: "late_success", reasonNumber: 1 },
        { orderId: 41, intentId: 4, reason: "late_money", reasonNumber: 1 },
      ];
      const olderReasons: OlderReason[] = [
        { orderId: 39, intentId: 2, reason: "late_success" },
        { orderId: 40, intentId: 3, reason: "outcome_unknown" },
        { orderId: 41, intentId: 4, reason: "qr_presented" },
      ];
      expect(unclearCollections({ ended: [paid, ended, clear], unclearCollections: known, olderReasons })).toEqual([
        { intent_id: 7, order_id: 42, order_display_number: ended.orderDisplayNumber, reason: "late_success" },
        { intent_id: 4, order_id: 41, order_display_number: null, reason: "late_money" },
        { intent_id: 3, order_id: 40, order_display_number: null, reason: "outcome_unknown" },
        { intent_id: 2, order_id: 39, order_display_number: null, reason: "late_success" },
      ]);
    });
  });

  it("fits its published schema, which allows no unknown field", () => {
    const wire = intentJson(intent({ status: "processing", reports: [report("reported_success")] }), FACTS);
    expect(intentSchema.strict().parse(wire)).toEqual(wire);
    expect(wire.amount).toBe("25.00");
  });
});

describe("the JSON of a lease", () => {
  const lease = {
    cashierId: 9,
    cashierName: "Ada",
    sessionId: 4,
    acquiredAtMs: NOW_MS - 1_000,
    expiresAtMs: NOW_MS + 1_000,
  };

  it("an active lease: names its holder, and is `mine` for the holder only", () => {
    expect(leaseHolderJson(lease, { userId: 9, nowMs: NOW_MS })?.mine).toBe(true);
    expect(leaseHolderJson(lease, { userId: 8, nowMs: NOW_MS })).toMatchObject({ mine: false, cashier_name: "Ada" });
  });

  it("a lease whose deadline has passed: null", () => {
    expect(leaseHolderJson(lease, { userId: 9, nowMs: NOW_MS + 1_000 })).toBeNull();
  });
});
