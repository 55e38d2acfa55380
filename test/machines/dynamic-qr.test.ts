/** A collection by a provider's QR: its steps until it is paid, its failures, and unclear collections. */

import { describe, expect, it } from "vitest";
import { PROVIDER_DECLINES, PROVIDER_END_REASONS } from "../../machines/payment-intent.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { NO_KILL_SWITCHES } from "../../machines/standing.ts";
import { confirmationId } from "../../machines/station/deadlines.ts";
import { renderReply } from "../../machines/station/render-reply.ts";
import { routeOffer } from "../../machines/views/routes.ts";
import { moneyRefusal } from "./money-refusal.ts";
import { aQrCounter, aServedCounter, CASEY, ORDER, PROVIDER, QR, type Scenario } from "./scenario.ts";

const asked = (): Scenario => aQrCounter().picks("dynamic_qr").waits(300);
const shown = (): Scenario => asked().givesQr().waits(5_000);
const SUCCEEDED = { ok: true, type: "intent", status: "succeeded" };

describe("M41 an overdue QR", () => {
  const PAST_DEADLINE_MS = 200_000;
  const overdue = (): Scenario => shown().waits(PAST_DEADLINE_MS);
  const recordedOf = (counter: Scenario, providerReference = "PAY-1"): Scenario => {
    counter.recordedConfirmation = { providerReference };
    return counter;
  };

  it("a confirmation was recorded in time: it settles the intent, and the confirmation's command finds it settled", () => {
    const counter = recordedOf(overdue()).ticks();
    expect(counter.happened).toEqual(["provider_confirmed"]);
    expect(counter.intent).toMatchObject({ status: "settling", attestation: { by: "provider", reference: "PAY-1" } });
    expect(counter.confirms().reply).toMatchObject({ status: "settling" });
    expect(counter.settles().intent?.status).toBe("succeeded");
    expect(counter.confirms({ key: "again" }).reply).toMatchObject(SUCCEEDED);
  });

  it("another confirmation arrives after a recorded one: the recorded one settles the intent, the other is refused", () => {
    const other = { key: "second-money", reference: "PAY-2" };
    const counter = recordedOf(overdue()).confirms(other);
    expect(counter.happened).toEqual(["provider_confirmed"]);
    expect(counter.reply).toMatchObject({ code: "settlement_in_progress" });
    counter.settles().confirms(other);
    expect(counter.happened).toEqual(["late_money_kept"]);
    expect(counter.reply).toMatchObject({ code: "intent_not_actionable", status: "succeeded" });
  });

  it("the seam refuses a recorded confirmation: the confirmation's command gets that refusal", () => {
    const counter = recordedOf(overdue()).ticks().refusesToSettle("money_already_used");
    expect(counter.happened).toEqual(["settlement_refused", "intent_expired"]);
    expect(counter.confirms({ key: confirmationId(counter.intentId) }).reply).toMatchObject({
      code: "money_already_used",
    });
  });

  it("no confirmation was recorded in time: the intent expires, and a later confirmation is late", () => {
    const counter = overdue().ticks();
    expect(counter.happened).toEqual(["intent_expired"]);
    expect(recordedOf(counter).confirms().reply).toMatchObject({ code: "intent_not_actionable", status: "expired" });
  });

  it("it is unknown whether a confirmation was recorded: the intent stays, no QR is shown, and its cashier can end it", () => {
    const counter = overdue();
    counter.recordedConfirmation = "unknown";
    expect(counter.ticks().happened).toEqual([]);
    expect(counter.intent?.status).toBe("presented");
    expect(counter.display.state).not.toBe("qr");
    expect(counter.cancels().happened).toEqual(["intent_cancelled"]);
    expect(counter.picks("cash").reply).toMatchObject({ code: "money_may_have_moved" });
  });

  it("the provider returns the QR after the deadline: the QR is not shown", () => {
    const counter = asked().waits(PAST_DEADLINE_MS);
    counter.recordedConfirmation = "unknown";
    expect(counter.givesQr().happened).toEqual([]);
    expect(counter.intent).toMatchObject({ status: "created", presentedAtMs: null });
  });
});

describe("a QR collection", () => {
  it("the usual steps: provider asked, QR, confirmation, paid", () => {
    const counter = asked();
    expect(counter.intent).toMatchObject({ status: "created", deviceId: null, provider: { configId: PROVIDER.id } });
    expect(counter.display).toMatchObject({ state: "total", qr_payload: "" });
    counter.givesQr();
    expect(counter.display).toMatchObject({ state: "qr", qr_payload: QR, amount: "12.50", intent_status: "presented" });
    counter.waits(4_000).confirms({ key: "confirm" });
    expect(counter.reply).toMatchObject({ ok: true, status: "settling" });
    expect(counter.display).toMatchObject({ state: "total", qr_payload: "", intent_status: "processing" });
    counter.waits(30).settles(9_001);
    expect(counter.display.state).toBe("paid");
    expect(counter.intent).toMatchObject({
      status: "succeeded",
      provider: { qrPayload: "", providerReference: "PAY-1" },
      attestation: { by: "provider", cashierId: 0, cashierName: "", reference: "PAY-1", transactionId: 9_001 },
    });
    expect(counter.confirms({ key: "confirm" }).reply).toMatchObject(SUCCEEDED);
    expect(counter.repeated).toBe(true);
  });

  it("a confirmation arrives before the QR: it settles the intent, and the QR is not shown", () => {
    const counter = asked().confirms();
    expect(counter.happened).toEqual(["provider_confirmed"]);
    expect(counter.givesQr().happened).toEqual([]);
    expect(counter.display.state).toBe("total");
    expect(counter.settles().intent).toMatchObject({ status: "succeeded", presentedAtMs: null });
  });

  it("the same payment is confirmed again, under any id: the answer is the same, without a second settlement", () => {
    const counter = shown().confirms({ key: "a" });
    expect(counter.confirms({ key: "b" }).reply).toMatchObject({ status: "settling" });
    expect(counter.happened).toEqual([]);
    counter.settles();
    for (const key of ["a", "b", "c"]) expect(counter.confirms({ key }).reply).toMatchObject(SUCCEEDED);
    expect(counter.happened).toEqual([]);
  });

  it("the station gets another provider config: the collection keeps the config of the provider that it asked", () => {
    const counter = shown().uses(82);
    expect(counter.confirms({ by: { kind: "provider", id: 82 } }).reply).toMatchObject({ code: "intent_unknown" });
    expect(counter.confirms({ by: CASEY }).reply).toMatchObject({ code: "intent_unknown" });
    expect(counter.confirms().settles().intent?.status).toBe("succeeded");
  });

  it.each(PROVIDER_END_REASONS)("%s: the collection ends with this reason, and another one can begin", (reason) => {
    const counter = asked().fails(reason);
    expect(counter.intent).toMatchObject({ status: "cancelled", endReason: reason });
    expect(counter.fails(reason).happened).toEqual([]);
    expect(counter.reply).toMatchObject({ ok: true, status: "cancelled" });
    expect(counter.picks("dynamic_qr").happened).toEqual(["intent_created"]);
  });

  it("the provider reports a failure after the payment: the collection does not end", () => {
    const counter = shown().confirms();
    expect(counter.fails("payment_declined").reply).toMatchObject({ code: "settlement_in_progress" });
    counter.refusesToSettle("order_changed");
    expect(counter.fails("payment_declined").reply).toMatchObject({
      code: "intent_not_actionable",
      status: "processing",
    });
  });

  it("the stored answer to a creation: unchanged at every later step", () => {
    const counter = aQrCounter().picks("dynamic_qr", { key: "create" });
    const created = counter.intent;
    for (const later of [() => counter.givesQr(), () => counter.confirms(), () => counter.settles()]) {
      later();
      const stored = counter.station.replies.find((reply) => reply.commandId === "create");
      expect(stored && renderReply(counter.station, stored.reply)?.intent).toEqual(created);
    }
  });
});

describe("a confirmation that the seam refuses", () => {
  it("the order has changed: the payment stays with the intent until the cashier attests the corrected order", () => {
    const counter = shown().confirms({ key: "confirm" }).refusesToSettle("order_changed");
    expect(counter.intent).toMatchObject({ status: "processing", attestation: null });
    expect(counter.confirms({ key: "confirm" }).reply).toMatchObject({ ok: false, code: "order_changed" });
    counter.attests({ reference: "typed" });
    expect(counter.intent?.attestation).toMatchObject({ by: "cashier", cashierId: CASEY.id, reference: "PAY-1" });
    expect(counter.settles().intent?.status).toBe("succeeded");
  });

  it("the provider repeats the confirmation under a new id: the seam is asked again", () => {
    const counter = shown().confirms({ key: "a" }).refusesToSettle("order_changed").confirms({ key: "b" });
    expect(counter.intent?.attestation).toMatchObject({ by: "provider", commandId: "b" });
    // A late refusal of the first confirmation must not undo the second one.
    expect(counter.refusesToSettle("order_changed", { attestationId: "a" }).intent?.status).toBe("settling");
  });

  it("the deadline passed meanwhile: the intent expires in the refusal's commit, and its order stays unclear", () => {
    const counter = shown().confirms().waits(180_000).refusesToSettle("order_voided");
    expect(counter.happened).toEqual(["settlement_refused", "intent_expired"]);
    expect(counter.station.unclearCollections).toMatchObject([
      { orderId: 501, intentId: 1_001, reason: "provider_confirmed" },
    ]);
  });
});

describe("M25 a payment that comes too late", () => {
  const LATE: readonly [how: string, counter: () => Scenario, status: string][] = [
    ["after the cashier cancelled", () => shown().cancels(), "cancelled"],
    ["after the deadline", () => shown().waits(180_000).ticks(), "expired"],
    ["exactly at the deadline, before its commit", () => shown().waits(180_000), "expired"],
    ["after a decline", () => shown().fails("payment_declined"), "cancelled"],
    ["after the provider cleared it", () => shown().cancels().clears(), "cancelled"],
  ];
  it.each(LATE)("%s: it settles nothing and is kept as late money, and the order is unclear", (_how, build, status) => {
    const counter = build().confirms({ key: "late" });
    expect(counter.reply).toEqual({ ok: false, code: "intent_not_actionable", status });
    expect(counter.happened.at(-1)).toBe("late_money_kept");
    expect(counter.intent?.status).toBe(status);
    expect(counter.station.unclearCollections.at(-1)).toMatchObject({
      orderId: 501,
      intentId: 1_001,
      reason: "late_money",
    });
    const events = counter.commits.length;
    expect(counter.confirms({ key: "late" }).repeated).toBe(true);
    expect(counter.commits).toHaveLength(events);
  });

  it("a second payment of a paid intent: kept as late money, and no order is unclear", () => {
    const counter = shown().confirms().settles().confirms({ reference: "PAY-2" });
    expect(counter.reply).toEqual({ ok: false, code: "intent_not_actionable", status: "succeeded" });
    expect(counter.happened).toEqual(["late_money_kept"]);
    expect(counter.station.unclearCollections).toEqual([]);
  });

  it("a second payment before the seam has answered about the first: it waits, and is late after a refusal", () => {
    const counter = shown().confirms().confirms({ reference: "PAY-2" });
    expect(counter.reply).toMatchObject({ code: "settlement_in_progress" });
    counter.refusesToSettle("order_changed").confirms({ reference: "PAY-2" });
    expect(counter.reply).toMatchObject({ code: "intent_not_actionable", status: "processing" });
    expect(counter.intent?.provider?.providerReference).toBe("PAY-1");
  });

  it("a payment for an intent that the host recalled: kept as late money", () => {
    const counter = shown().cancels();
    const { intent: recalled, intentId } = counter;
    for (let made = 0; made < STATE_LIMITS.endedIntents; made += 1) counter.picks("cash", { confirms: true }).cancels();
    expect(counter.confirms({ intentId }).reply).toMatchObject({ code: "intent_unknown" });
    counter.recalled = recalled;
    expect(counter.confirms({ intentId }).happened).toEqual(["late_money_kept"]);
  });
});

describe("the id of the HTTP request", () => {
  it("of the creation: kept until the QR is there", () => {
    const counter = aQrCounter();
    counter.requestId = "request-1";
    expect(counter.picks("dynamic_qr").intent?.provider?.requestId).toBe("request-1");
    counter.requestId = "request-2";
    expect(counter.waits(300).givesQr().intent?.provider?.requestId).toBeUndefined();
  });

  it("of the creation: no longer kept when a confirmation arrives before the QR", () => {
    const counter = aQrCounter();
    counter.requestId = "request-1";
    counter.picks("dynamic_qr");
    counter.requestId = undefined;
    expect(counter.confirms().intent?.provider?.requestId).toBeUndefined();
  });

  it("of the cancellation: kept with the ended intent", () => {
    const counter = shown();
    counter.requestId = "request-3";
    expect(counter.cancels().station.ended[0]?.provider?.requestId).toBe("request-3");
  });
});

describe("an intent that has left the bounded state", () => {
  it("the provider reports that nothing moved, and only the recalled intent has late money: an event removes it", () => {
    const counter = shown().cancels();
    const [recalled] = counter.station.ended;
    if (recalled === undefined) throw new Error("none has ended");
    const without = { ...counter.station, ended: [], unclearCollections: [] };
    for (const [reason, events] of [
      ["late_money", ["unclear_resolved"]],
      ["late_success", []],
      ["", []],
    ] as const) {
      counter.state = without;
      counter.recalled = { ...recalled, reasonSinceEnd: reason };
      expect(counter.clears(recalled.intentId).happened, reason).toEqual(events);
    }
  });

  it("the provider reports that nothing moved, and only an older reason names the order: the reason is removed", () => {
    const counter = shown().cancels();
    const { orderId } = ORDER;
    const older = { orderId, intentId: 900, reason: "qr_presented" as const };
    const another = { ...older, intentId: 901 };
    counter.state = { ...counter.station, olderReasons: [older, another] };
    expect(counter.clears(900).happened).toEqual(["unclear_resolved"]);
    expect(counter.station.olderReasons).toEqual([another]);
  });

  it("a second payment of an intent that was paid long ago: makes no order unclear", () => {
    const counter = shown().confirms().settles();
    const { intent: recalled, intentId } = counter;
    for (let turn = 1; turn <= STATE_LIMITS.knownOrders; turn += 1) {
      counter
        .order({ orderId: 600 + turn })
        .picks("cash")
        .attests()
        .settles(9_100 + turn);
    }
    counter.recalled = recalled;
    counter.confirms({ intentId, reference: "PAY-2" });
    expect([counter.happened, counter.station.unclearCollections]).toEqual([["late_money_kept"], []]);
    expect(counter.confirms({ intentId, reference: "PAY-1" }).reply).toMatchObject(SUCCEEDED);
  });
});

describe("an unclear order", () => {
  const reported = (outcome: "reported_unknown" | "reported_success" | "reported_declined"): Scenario =>
    aQrCounter().picks("smart_pos").reports(outcome);
  const ROWS: readonly [what: string, counter: () => Scenario, reason: string | undefined][] = [
    ["the QR was never shown", () => asked().cancels(), undefined],
    ["the QR was shown and the cashier cancelled", () => shown().cancels(), "qr_presented"],
    ["the QR was shown and the deadline passed", () => shown().waits(180_000).ticks(), "qr_presented"],
    ["the QR was shown and the provider declined", () => shown().fails("payment_declined"), undefined],
    ["the QR was shown and the provider failed", () => shown().fails("provider_unavailable"), "qr_presented"],
    ["the outcome was unknown", () => reported("reported_unknown").cancels(), "outcome_unknown"],
    ["a success was reported", () => reported("reported_success").cancels(), "success_reported"],
    ["a decline was reported", () => reported("reported_declined").cancels(), undefined],
    [
      "a decline was reported after an unknown outcome",
      () => reported("reported_unknown").reports("reported_declined").cancels(),
      "outcome_unknown",
    ],
    [
      "a success was reported after the end",
      () => aQrCounter().picks("smart_pos").cancels().reports("reported_success"),
      "late_success",
    ],
    [
      "an unknown outcome was reported after the end",
      () => aQrCounter().picks("smart_pos").cancels().reports("reported_unknown"),
      "late_evidence",
    ],
    [
      "a decline was reported after the end",
      () => aQrCounter().picks("smart_pos").cancels().reports("reported_declined"),
      undefined,
    ],
    ["the order was voided meanwhile", () => shown().order({ status: "voided", revision: 2 }).cancels(), undefined],
  ];
  it.each(ROWS)("%s", (_what, build, reason) => {
    const counter = build();
    expect(counter.station.unclearCollections.map((unclear) => unclear.reason)).toEqual(
      reason === undefined ? [] : [reason],
    );
  });

  it.each(["cash", "smart_pos", "dynamic_qr"] as const)(
    "a second collection by %s: refused until the cashier confirms",
    (route) => {
      const counter = shown().cancels();
      const earlierIntentId = counter.intentId;
      expect(counter.picks(route, { key: "again" }).reply).toEqual(
        moneyRefusal({ reason: "qr_presented", earlierIntentId }),
      );
      expect(counter.picks(route, { confirms: false }).reply).toMatchObject({ code: "money_may_have_moved" });
      counter.picks(route, { confirms: true, key: "again" });
      expect(counter.happened).toEqual(["intent_created", "second_collection_confirmed"]);
    },
  );

  it("a confirmation without an unclear collection: not recorded", () => {
    expect(aQrCounter().picks("cash", { confirms: true }).happened).toEqual(["intent_created"]);
  });

  it("another order: needs no confirmation", () => {
    const counter = shown().cancels().order({ orderId: 502, orderDisplayNumber: 8 });
    expect(counter.picks("cash").happened).toEqual(["intent_created"]);
  });

  it("paid, voided, or the provider reports that nothing was paid: no longer unclear", () => {
    const unclear = (): Scenario => shown().cancels();
    expect(unclear().picks("cash", { confirms: true }).attests().settles().station.unclearCollections).toEqual([]);
    expect(unclear().order({ status: "voided", revision: 2 }).station.unclearCollections).toEqual([]);
    const cleared = unclear().clears();
    expect([cleared.happened, cleared.station.unclearCollections]).toEqual([["unclear_resolved"], []]);
    expect(cleared.clears().happened).toEqual([]);
    expect(cleared.picks("dynamic_qr").happened).toEqual(["intent_created"]);
  });

  it("more unclear collections than the bound: the newest ones are kept", () => {
    const counter = aQrCounter();
    for (let turn = 1; turn <= STATE_LIMITS.unclearCollections + 2; turn += 1) {
      counter
        .order({ orderId: 600 + turn })
        .picks("dynamic_qr")
        .givesQr()
        .cancels();
    }
    const ids = counter.station.unclearCollections.map((unclear) => unclear.orderId);
    expect([ids.length, ids[0], ids.at(-1)]).toEqual([STATE_LIMITS.unclearCollections, 603, 618]);
    expect(counter.station.unclearForgottenThrough).toBe(602);
  });

  it("an order whose unclear collection was displaced, and every older order: need a confirmation that names no intent", () => {
    const counter = aQrCounter();
    for (let turn = 1; turn <= STATE_LIMITS.unclearCollections + 1; turn += 1)
      counter
        .order({ orderId: 600 + turn })
        .picks("dynamic_qr")
        .givesQr()
        .cancels();
    expect(counter.order({ orderId: 601, revision: 2 }).picks("cash").reply).toEqual(moneyRefusal({}));
    expect(counter.order({ orderId: 599 }).picks("cash").reply).toMatchObject({ code: "money_may_have_moved" });
    counter.order({ orderId: 601, revision: 3 }).picks("cash", { confirms: true });
    expect(counter.commits.at(-1)?.events.at(-1)).toMatchObject({
      type: "second_collection_confirmed",
      earlierIntentId: null,
    });
    // A paid order is not unclear, and no later order was ever unclear.
    expect(counter.attests().settles().picks("cash").reply).toMatchObject({ code: "order_already_paid" });
    expect(counter.order({ orderId: 650 }).picks("cash").happened).toEqual(["intent_created"]);
  });
});

describe("the station's provider", () => {
  it("an older choice of the provider: ignored, and the newest one stays", () => {
    const counter = aServedCounter().uses(81, 5).uses(82, 4);
    expect(counter.station.provider).toEqual({ configId: 81, revision: 5 });
    expect(counter.happened).toEqual([]);
    expect(counter.uses(null, 6).picks("dynamic_qr").reply).toMatchObject({ reason: "provider_not_configured" });
  });

  it("frozen by its kill switch: the route is withdrawn", () => {
    const { station } = aQrCounter();
    const offer = (providers: number[]): string =>
      routeOffer(station, "dynamic_qr", { ...NO_KILL_SWITCHES, providers: new Set(providers) }).reason ?? "offered";
    expect([offer([]), offer([PROVIDER.id]), offer([82])]).toEqual(["offered", "provider_frozen", "offered"]);
  });

  it("frozen: no new collection begins, and a payment of an earlier collection is still settled", () => {
    const counter = shown().freezes({ providers: new Set([PROVIDER.id]) });
    expect(counter.confirms().settles().intent?.status).toBe("succeeded");
    expect(counter.order({ orderId: 502 }).picks("dynamic_qr").reply).toMatchObject({ reason: "provider_frozen" });
  });

  it.each(PROVIDER_DECLINES)(
    "reports %s, a certain decline: the next collection of the order needs no confirmation",
    (reason) => {
      expect(shown().fails(reason).picks("cash").happened).toEqual(["intent_created"]);
    },
  );
});
