/** An asserted payment is never dropped for weaker evidence, is confirmed once for each payment, and stays visible. */
import { describe, expect, it } from "vitest";
import { unclearCollections } from "../../gateway/api/cashier/unclear-collections.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { moneyRefusal } from "./money-refusal.ts";
import { aFetchedCounter, aQrCounter, aServedCounter, reasonsOf, type Scenario } from "./scenario.ts";

const EARLIER = { intentId: 1_001 };
const asked = (reason: string): object => moneyRefusal({ reason, earlierIntentId: 1_001 });
const PAID = { status: "paid", revision: 2 } as const;
const inCash = (counter: Scenario): Scenario => counter.picks("cash", { confirms: true });
const paidInCash = (counter: Scenario): Scenario => inCash(counter.cancels()).attests().settles();
const shown = (): Scenario => aQrCounter().picks("dynamic_qr").givesQr();
/** The station collects other orders, one collection each, until the first intents have left its state. */
function collectsOthers(counter: Scenario, orders: number = STATE_LIMITS.endedIntents): Scenario {
  for (let turn = 1; turn <= orders; turn += 1)
    counter
      .order({ orderId: 600 + turn, orderDisplayNumber: turn })
      .picks("cash")
      .attests()
      .settles(9_100 + turn);
  return counter;
}
const unclear = ({ station }: Scenario) =>
  unclearCollections(station).map(({ intent_id, reason }) => [intent_id, reason]);

describe("a late success after the maximum number of unknown outcomes", () => {
  const flooded = (): Scenario => {
    const counter = aFetchedCounter().cancels();
    for (let turn = 0; turn < STATE_LIMITS.lateEvidencePerIntent; turn += 1)
      counter.reports("reported_unknown", { code: `T${turn}` });
    return counter;
  };

  it("the success is kept, and the attestation of the next collection asks for a confirmation", () => {
    const counter = inCash(flooded()).reports("reported_success", { ...EARLIER, reference: "RRN-9" });
    expect(counter.happened).toEqual(["late_evidence_kept"]);
    expect(counter.attests().reply).toEqual(asked("late_success"));
    expect(unclear(counter)).toContainEqual([1_001, "late_success"]);
  });

  it("many more reports of each kind: no kind has more commits than its bound", () => {
    const counter = flooded();
    const before = counter.commits.length;
    for (let turn = 0; turn < 20; turn += 1) {
      counter
        .reports("reported_success", { reference: `RRN-${turn}` })
        .reports("reported_unknown", { code: `U${turn}` });
      counter.reports("reported_declined", { code: `D${turn}` });
    }
    expect(counter.commits.length - before).toBe(2 * STATE_LIMITS.lateEvidencePerIntent);
  });
});

describe("a further payment after the cashier's confirmation", () => {
  const confirmedFirst = (): Scenario => inCash(shown().cancels().confirms({ reference: "PAY-1" }));

  it("a provider's other payment: the attestation asks again", () => {
    const counter = confirmedFirst().confirms({ ...EARLIER, reference: "PAY-2" });
    expect([counter.happened, counter.attests().reply]).toEqual([["late_money_kept"], asked("late_money")]);
    expect(counter.attests({ confirmsMoney: true }).happened).toContain("second_collection_confirmed");
  });

  it("the same payment once more, under another key: nothing happens, and no confirmation is needed", () => {
    const counter = confirmedFirst().confirms({ ...EARLIER, reference: "PAY-1" });
    expect([counter.reply, counter.happened]).toEqual([
      { ok: false, code: "intent_not_actionable", status: "cancelled" },
      [],
    ]);
    expect(counter.confirms({ ...EARLIER, reference: "PAY-1" }).attests().happened).toEqual(["settlement_started"]);
  });

  it("the provider's payment from before the end again: kept as late money, and no confirmation is needed", () => {
    const counter = inCash(shown().confirms().refusesToSettle().cancels()).confirms({ ...EARLIER });
    expect([counter.happened, counter.attests().happened]).toEqual([["late_money_kept"], ["settlement_started"]]);
  });

  it("an issue about the late payment that the cashier confirmed: no confirmation is needed", () => {
    const counter = confirmedFirst().differs("late_money", EARLIER);
    expect([counter.happened, counter.attests().happened]).toEqual([[], ["settlement_started"]]);
  });

  it("a differing payment: its issue again changes nothing, and another issue makes the attestation ask again", () => {
    const counter = inCash(shown().cancels().differs("amount_mismatch", { issueId: 1 }));
    expect(counter.differs("amount_mismatch", { ...EARLIER, issueId: 1 }).happened).toEqual([]);
    expect(counter.differs("amount_mismatch", { ...EARLIER, issueId: 2 }).happened).toEqual(["money_differs"]);
    expect(counter.attests().reply).toEqual(asked("money_differs"));
  });

  it("a companion's success: repeated it changes nothing, and with another reference the attestation asks again", () => {
    const counter = inCash(aFetchedCounter().cancels().reports("reported_success", { reference: "RRN-1" }));
    expect(counter.reports("reported_success", { ...EARLIER, reference: "RRN-1" }).happened).toEqual([]);
    expect(counter.reports("reported_success", { ...EARLIER, reference: "RRN-2" }).attests().reply).toEqual(
      asked("late_success"),
    );
  });

  it("a success from before the end: repeated it needs no confirmation, and another success needs one", () => {
    const success = (counter: Scenario, reference: string) =>
      counter.reports("reported_success", { ...EARLIER, reference });
    const first = (): Scenario => inCash(success(aFetchedCounter(), "RRN-1").cancels());
    expect(success(first(), "RRN-1").attests().happened).toEqual(["settlement_started"]);
    expect(success(success(first(), "RRN-2"), "RRN-1").attests().reply).toEqual(asked("late_success"));
  });

  it("more successes than the bound: a new one asks when the one before is confirmed, otherwise it commits nothing", () => {
    const counter = inCash(aFetchedCounter().cancels());
    for (let turn = 0; turn < 3 * STATE_LIMITS.lateEvidencePerIntent; turn += 1) {
      counter.reports("reported_success", { ...EARLIER, reference: `RRN-${turn}` });
      expect([counter.happened, counter.attests().reply]).toEqual([["late_evidence_kept"], asked("late_success")]);
      counter.attests({ confirmsMoney: true }).refusesToSettle();
    }
    const { length } = counter.reports("reported_success", { ...EARLIER, reference: "A" }).commits;
    for (const reference of "BCDEFG") counter.reports("reported_success", { ...EARLIER, reference });
    expect(counter.commits).toHaveLength(length);
  });
});

describe("the issue of a refused settlement", () => {
  const refused = (): Scenario => shown().confirms().refusesToSettle();
  const notified = (counter: Scenario): Scenario => counter.differs("settlement_refused", EARLIER);
  const confirmed = [[1_001, "provider_confirmed"]];

  it("the collection is active or has settled: the issue changes nothing", () => {
    const counter = notified(refused());
    expect([counter.happened, counter.intent?.moneyMayHaveMoved]).toEqual([[], ""]);
    expect(notified(counter.attests().settles()).happened).toEqual([]);
  });

  it.each([
    ["it was cancelled", () => refused().cancels()],
    ["its deadline passed", () => shown().confirms().waits(180_000).refusesToSettle()],
  ])("%s: its reason stays the confirmed payment, and needs one confirmation", (_what, build) => {
    const counter = notified(build());
    expect([counter.happened, reasonsOf(counter), unclear(counter)]).toEqual([[], confirmed, confirmed]);
    expect(notified(inCash(counter.leased())).attests().happened).toEqual(["settlement_started"]);
  });

  it("the provider cleared it and the issue comes again: the confirmed payment counts again", () => {
    const counter = notified(refused().cancels().clears());
    expect([counter.happened, reasonsOf(counter), unclear(counter)]).toEqual([["money_differs"], confirmed, confirmed]);
  });
});

describe("a paid order that eight other orders have followed", () => {
  it.each([
    ["its earlier collection has ended", (counter: Scenario) => paidInCash(counter)],
    ["its collection ends later", (counter: Scenario) => counter.reports("reported_declined").order(PAID)],
  ])("%s: a late success is named there, and the order is not unclear", (_what, pay) => {
    const counter = pay(aFetchedCounter());
    for (let turn = 1; turn <= STATE_LIMITS.knownOrders; turn += 1) counter.order({ orderId: 600 + turn });
    if (counter.station.intent !== null) counter.cancels();
    counter.reports("reported_success", EARLIER);
    expect([unclear(counter), counter.station.unclearCollections]).toEqual([[[1_001, "late_success"]], []]);
    collectsOthers(counter, STATE_LIMITS.knownOrders + 1);
    expect(counter.station.knownOrders.map(({ orderId }) => orderId)).not.toContain(501);
  });
});

describe("a full list of reasons", () => {
  it("many orders with weaker evidence: a reported payment stays named", () => {
    const counter = aFetchedCounter().cancels().reports("reported_success", { reference: "RRN-1" }).uses();
    for (let turn = 1; turn <= 2 * STATE_LIMITS.unclearCollections; turn += 1)
      counter
        .order({ orderId: 600 + turn })
        .picks("dynamic_qr", { confirms: true })
        .givesQr()
        .cancels()
        .reportsEnd();
    expect(counter.station.unclearCollections).toHaveLength(STATE_LIMITS.unclearCollections);
    expect(counter.order().picks("cash").reply).toEqual(asked("late_success"));
    expect(unclear(counter)).toContainEqual([1_001, "late_success"]);
  });
});

describe("a repeated notice of a differing payment", () => {
  const again = (counter: Scenario): readonly string[] =>
    [1, 2, 3].flatMap(() => counter.differs("amount_mismatch", EARLIER).happened);

  it.each([
    ["another collection has paid the order", () => paidInCash(shown())],
    ["the intent has paid it", () => shown().confirms().settles()],
    ["the order is voided", () => shown().order({ status: "voided", revision: 2 })],
  ])("%s: one commit", (_what, build) => {
    const counter = build();
    expect(again(counter)).toEqual(["money_differs"]);
  });

  it("the intent has left the state: one commit", () => {
    const counter = paidInCash(shown());
    const earlier = counter.station.ended.find(({ intentId }) => intentId === EARLIER.intentId);
    collectsOthers(counter).recalled = earlier;
    expect(again(counter)).toEqual(["money_differs"]);
  });
});

describe("a collection that has left the state", () => {
  /** The earlier collection of an order that was paid in cash, after its station has dropped the intent. */
  function left(counter: Scenario, orders?: number): Scenario {
    const paid = paidInCash(counter);
    const earlier = paid.station.ended.find(({ intentId }) => intentId === EARLIER.intentId);
    collectsOthers(paid, orders);
    expect(paid.station.ended.some(({ intentId }) => intentId === EARLIER.intentId)).toBe(false);
    paid.recalled = earlier;
    paid.recalledOrder = "paid";
    return paid;
  }

  it.each([
    ["its order is still known", STATE_LIMITS.endedIntents - 1],
    ["its order is forgotten too", 2 * STATE_LIMITS.knownOrders],
  ])("%s: its reason stays, and a late success is named there and the paid order is not unclear", (_what, orders) => {
    const counter = left(aFetchedCounter(), orders);
    expect(unclear(counter)).toEqual([[1_001, "handoff_presented"]]);
    counter.reports("reported_success", { ...EARLIER, reference: "RRN-9" });
    expect([counter.happened, unclear(counter), counter.station.unclearCollections]).toEqual([
      ["late_evidence_kept"],
      [[1_001, "late_success"]],
      [],
    ]);
    counter.reports("reported_unknown", EARLIER);
    expect(unclear(counter)).toEqual([[1_001, "late_success"]]);
  });

  it("it had no reason at its end, and a late success comes: the success is its reason", () => {
    const counter = left(aServedCounter().picks("smart_pos"));
    expect(unclear(counter)).toEqual([]);
    expect(unclear(counter.reports("reported_success", EARLIER))).toEqual([[1_001, "late_success"]]);
  });

  it("its companion was silent and reports a decline: its reason is removed", () => {
    const counter = left(aFetchedCounter()).reports("reported_declined", EARLIER);
    expect([counter.happened, unclear(counter)]).toEqual([["late_evidence_kept", "unclear_resolved"], []]);
  });

  it("it is a QR, and late money comes: the money is its reason until the provider withdraws it", () => {
    const counter = left(shown()).confirms(EARLIER);
    expect(unclear(counter)).toEqual([[1_001, "late_money"]]);
    expect([counter.clears(1_001).happened, unclear(counter)]).toEqual([["unclear_resolved"], []]);
    expect(unclear(counter.confirms(EARLIER)), "and counts again").toEqual([[1_001, "late_money"]]);
  });

  it("its order is open, and a success is reported: the next collection asks for a confirmation", () => {
    const counter = aFetchedCounter().cancels();
    const { intent } = counter;
    collectsOthers(counter, 2 * STATE_LIMITS.knownOrders);
    counter.recalled = intent;
    counter.recalledOrder = "open";
    expect(counter.reports("reported_success", EARLIER).order().picks("cash").reply).toEqual(asked("late_success"));
  });

  it("many others with weaker reasons follow: its success stays a reason, and the list keeps its bound", () => {
    const counter = left(aFetchedCounter()).reports("reported_success", EARLIER);
    for (let turn = 1; turn <= 2 * STATE_LIMITS.olderReasons; turn += 1) {
      const order = { orderId: 700 + turn, orderDisplayNumber: turn };
      counter.order(order).picks("smart_pos").fetches().cancels();
      counter.order({ ...order, status: "paid", revision: 2 });
    }
    expect(unclear(counter)).toHaveLength(STATE_LIMITS.endedIntents + STATE_LIMITS.olderReasons);
    expect(unclear(counter)).toContainEqual([1_001, "late_success"]);
  });
});
