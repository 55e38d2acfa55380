/**
 * What a confirmation that money may have moved covers: the reasons that the station knew when it asked. Each case names what
 * comes between the question and the confirmation.
 */
import { describe, expect, it } from "vitest";
import type { PaymentIntent } from "../../machines/payment-intent.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { collectionsOf } from "../../machines/station/lost-collections.ts";
import type { LostCollections } from "../../machines/station/state.ts";
import { moneyRefusal } from "./money-refusal.ts";
import { aQrCounter, ORDER, REGISTRY, Scenario, STATION, STATION_ID } from "./scenario.ts";

const SUCCESS = { intentId: 1_002, reference: "RRN-1" };

/** A declined hand-off, a declined hand-off with a late success, and a QR with a late payment. All of one order. */
const earlierCollections = (): Scenario =>
  aQrCounter()
    .picks("smart_pos", { intentId: 1_001 })
    .fetches()
    .reports("reported_declined")
    .cancels()
    .picks("smart_pos", { intentId: 1_002 })
    .fetches()
    .reports("reported_declined")
    .cancels()
    .picks("dynamic_qr", { intentId: 1_003 })
    .givesQr()
    .cancels()
    .reports("reported_success", SUCCESS)
    .confirms({ intentId: 1_003, reference: "PAY-1" });

const between: readonly (readonly [string, (counter: Scenario) => Scenario, object | "goes on"])[] = [
  ["nothing", (counter) => counter, "goes on"],
  ["the same success under another key", (counter) => counter.reports("reported_success", SUCCESS), "goes on"],
  ["the same payment by QR", (counter) => counter.confirms({ intentId: 1_003, reference: "PAY-1" }), "goes on"],
  [
    "another success of the same collection",
    (counter) => counter.reports("reported_success", { ...SUCCESS, reference: "RRN-2" }),
    { reason: "late_success", earlierIntentId: 1_002 },
  ],
  [
    "another payment by the same QR",
    (counter) => counter.confirms({ intentId: 1_003, reference: "PAY-2" }),
    { reason: "late_money", earlierIntentId: 1_003 },
  ],
  [
    "a payment by the same QR that differs",
    (counter) => counter.differs("amount_mismatch", { intentId: 1_003 }),
    { reason: "money_differs", earlierIntentId: 1_003 },
  ],
  [
    "a weaker reason of another collection",
    (counter) => counter.reports("reported_unknown", { intentId: 1_001 }),
    { reason: "late_evidence", earlierIntentId: 1_001 },
  ],
  [
    "a weaker reason of the same collection",
    (counter) => counter.reports("reported_unknown", { intentId: 1_002 }),
    { reason: "late_evidence", earlierIntentId: 1_002 },
  ],
];

/** The number that the station's last refusal has. */
function askedNumber({ reply }: Scenario): number {
  if (reply === undefined || reply.ok || reply.code !== "money_may_have_moved") expect.unreachable();
  return reply.reasonNumber ?? expect.unreachable();
}

describe("a creation: between the question and the confirmation comes", () => {
  it.each(between)("%s: the confirmation covers what was known at the question", (_what, comes, expected) => {
    const counter = earlierCollections().picks("cash");
    const confirmedReasonNumber = askedNumber(counter);
    comes(counter).picks("cash", { confirms: { confirmedReasonNumber } });
    if (expected === "goes on") {
      expect(counter.happened).toEqual(["intent_created", "second_collection_confirmed"]);
      return;
    }
    expect(counter.reply).toMatchObject({ code: "money_may_have_moved", ...expected });
    expect(askedNumber(counter)).toBeGreaterThan(confirmedReasonNumber);
    counter.picks("cash", { confirms: { confirmedReasonNumber: askedNumber(counter) } });
    expect(counter.happened).toEqual(["intent_created", "second_collection_confirmed"]);
  });
});

describe("an attestation: between the question and the confirmation comes", () => {
  it.each(between)("%s: the confirmation covers what was known at the question", (_what, comes, expected) => {
    const counter = earlierCollections().picks("cash", { confirms: true });
    const attest = (confirmedReasonNumber?: number): Scenario =>
      counter.attests({ confirmsMoney: confirmedReasonNumber === undefined ? false : { confirmedReasonNumber } });
    counter.reports("reported_success", { ...SUCCESS, reference: "RRN-0" });
    const confirmed = askedNumber(attest());
    comes(counter);
    attest(confirmed);
    if (expected !== "goes on") {
      expect(counter.reply).toMatchObject({ code: "money_may_have_moved", ...expected });
      expect(askedNumber(counter)).toBeGreaterThan(confirmed);
      attest(askedNumber(counter));
    }
    expect(counter.happened).toEqual(["settlement_started", "second_collection_confirmed"]);
  });
});

describe("a question without a reason, because the station has forgotten it", () => {
  /** Order 601 and its ended intent, which have left the state. */
  function forgotten(): { readonly counter: Scenario; readonly ended: PaymentIntent } {
    const counter = aQrCounter().order({ orderId: 601 }).picks("dynamic_qr").givesQr().cancels();
    const ended = counter.station.ended[0] ?? expect.unreachable();
    for (let turn = 1; turn <= STATE_LIMITS.unclearCollections; turn += 1)
      counter
        .order({ orderId: 601 + turn })
        .picks("dynamic_qr")
        .givesQr()
        .cancels();
    counter.order({ orderId: 601, revision: 2 }).picks("cash");
    expect(counter.reply).not.toHaveProperty("reason");
    return { counter, ended };
  }

  it("nothing comes: the confirmation counts", () => {
    const { counter } = forgotten();
    counter.picks("cash", { confirms: { confirmedReasonNumber: askedNumber(counter) } });
    expect(counter.happened).toEqual(["intent_created", "second_collection_confirmed"]);
  });

  it("a late payment of this order comes: the station asks again and names it", () => {
    const { counter, ended } = forgotten();
    const confirmedReasonNumber = askedNumber(counter);
    counter.recalled = ended;
    counter.confirms({ intentId: ended.intentId, reference: "PAY-9" });
    counter.picks("cash", { confirms: { confirmedReasonNumber } });
    const { intentId: earlierIntentId } = ended;
    expect(counter.reply).toMatchObject({ code: "money_may_have_moved", reason: "late_money", earlierIntentId });
  });

  it("the station forgets another reason: it asks again", () => {
    const { counter } = forgotten();
    const confirmedReasonNumber = askedNumber(counter);
    counter.order({ orderId: 700 }).picks("dynamic_qr").givesQr().cancels();
    counter.order({ orderId: 601, revision: 3 }).picks("cash", { confirms: { confirmedReasonNumber } });
    expect(counter.reply).toMatchObject({ code: "money_may_have_moved" });
    expect(counter.reply).not.toHaveProperty("reason");
  });
});

describe("a payment that was reported before the end", () => {
  it("it is reported again after the question: the confirmation covers it", () => {
    const counter = aQrCounter().picks("smart_pos").fetches().reports("reported_success", { reference: "RRN-1" });
    const confirmedReasonNumber = askedNumber(counter.cancels().picks("cash"));
    counter.reports("reported_success", { intentId: 1_001, reference: "RRN-1", key: "late" });
    expect(counter.happened).toEqual(["late_evidence_kept"]);
    counter.picks("cash", { confirms: { confirmedReasonNumber } });
    expect(counter.happened).toEqual(["intent_created", "second_collection_confirmed"]);
  });
});

describe("the numbers of reasons", () => {
  const another = { ...SUCCESS, reference: "RRN-2" };
  const restores = (counter: Scenario, lost: LostCollections): Scenario =>
    counter.send({ type: "station_put", stationId: STATION_ID, station: STATION, lost }, REGISTRY);

  it("the log loses its end with another payment: an earlier confirmation does not cover this payment", () => {
    const counter = earlierCollections().picks("cash");
    const confirmedReasonNumber = askedNumber(counter);
    const before = earlierCollections().picks("cash").reports("reported_success", another);
    restores(counter.waits(60_000), collectionsOf(before.station));
    counter.picks("cash", { confirms: { confirmedReasonNumber } });
    expect(counter.reply).toEqual(moneyRefusal({ reason: "late_success", earlierIntentId: 1_002 }));
    counter.picks("cash", { confirms: { confirmedReasonNumber: askedNumber(counter) } });
    expect(counter.happened).toEqual(["intent_created", "second_collection_confirmed"]);
  });

  it("the same while a collection is under way that was confirmed before: the attestation asks", () => {
    const confirmed = (): Scenario => earlierCollections().picks("cash", { confirms: true });
    const counter = confirmed();
    restores(counter, collectionsOf(confirmed().reports("reported_success", another).station));
    expect(counter.attests().reply).toEqual(moneyRefusal({ reason: "late_success", earlierIntentId: 1_002 }));
  });

  it("what was restored is restored again: nothing happens", () => {
    const lost = collectionsOf(earlierCollections().picks("cash", { confirms: true }).station);
    const counter = restores(earlierCollections().picks("cash", { confirms: true }), lost);
    expect(restores(counter, lost).happened).toEqual([]);
  });

  it("the clock was set back, and the log is lost: an earlier confirmation covers no restored reason", () => {
    const before = earlierCollections().picks("cash");
    const restored = new Scenario();
    restored.atMs -= 3_600_000;
    restores(restored, collectionsOf(before.station)).order().leased();
    restored.picks("cash", { intentId: 1_010, confirms: { confirmedReasonNumber: askedNumber(before) } });
    expect(restored.reply).toMatchObject({ code: "money_may_have_moved" });
  });

  it("the log is lost and the reasons are restored: an earlier confirmation covers none of them", () => {
    const before = earlierCollections().picks("cash");
    const confirmedReasonNumber = askedNumber(before);
    const lost = collectionsOf(before.station);
    const restored = new Scenario().waits(60_000);
    restored.send({ type: "station_put", stationId: STATION_ID, station: STATION, lost }, REGISTRY).order().leased();
    restored.picks("cash", { intentId: 1_010, confirms: { confirmedReasonNumber } });
    expect(restored.reply).toMatchObject({ code: "money_may_have_moved", earlierIntentId: 1_003 });
    expect(askedNumber(restored)).toBeGreaterThan(confirmedReasonNumber);
  });

  it("a log without a copy of its end is lost, so that all orders ask: an earlier confirmation does not count", () => {
    const before = earlierCollections().picks("cash");
    const confirmedReasonNumber = askedNumber(before);
    const lost = { unclear: [], reasons: [], unclearThrough: ORDER.orderId, nextIntentNumber: 1 };
    const restored = new Scenario().waits(60_000);
    restored.send({ type: "station_put", stationId: STATION_ID, station: STATION, lost }, REGISTRY).order().leased();
    restored.picks("cash", { confirms: { confirmedReasonNumber } });
    expect(restored.reply).toEqual(moneyRefusal({}));
    restored.picks("cash", { confirms: { confirmedReasonNumber: askedNumber(restored) } });
    expect(restored.happened).toEqual(["intent_created", "second_collection_confirmed"]);
  });

  it("the bus's time stands still: each reason has a higher number than those before", () => {
    const counter = earlierCollections();
    const [first, second] = counter.station.unclearCollections.map(({ reasonNumber }) => reasonNumber);
    if (first === undefined || second === undefined) expect.unreachable();
    expect(second).toBeGreaterThan(first);
  });
});
