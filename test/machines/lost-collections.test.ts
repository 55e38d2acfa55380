/** A station's log is lost: the relay restores the collections that may have moved money, and the station asks as before. */
import { describe, expect, it } from "vitest";
import { collectionsOf } from "../../machines/station/lost-collections.ts";
import type { LostCollections } from "../../machines/station/state.ts";
import { moneyRefusal } from "./money-refusal.ts";
import {
  aFetchedCounter,
  aQrCounter,
  aServedCounter,
  COMPANION_DEVICE,
  ORDER,
  REGISTRY,
  reasonsOf,
  Scenario,
  STATION,
  STATION_ID,
} from "./scenario.ts";

const shown = (): Scenario => aQrCounter().picks("dynamic_qr").waits(300).givesQr();
const NOTHING: LostCollections = { unclear: [], reasons: [], unclearThrough: 0, nextIntentNumber: 1 };

const restore = (counter: Scenario, lost: LostCollections): Scenario =>
  counter.send({ type: "station_put", stationId: STATION_ID, station: STATION, lost }, REGISTRY);

/** The log has lost everything of this counter; the relay has announced the station, its companion and its order. */
function afterLoss(counter: Scenario): Scenario {
  return restore(new Scenario(), collectionsOf(counter.station))
    .describesDevice(COMPANION_DEVICE)
    .receivesHeartbeat()
    .order()
    .leased();
}

describe("a log that is lost completely", () => {
  it.each([
    ["a silent hand-off that was cancelled", () => aFetchedCounter().cancels(), "handoff_presented"],
    ["a hand-off that was fetched", aFetchedCounter, "handoff_presented"],
    [
      "a hand-off without a known fetch, because a fetch may be lost too",
      () => aServedCounter().picks("smart_pos"),
      "handoff_presented",
    ],
    ["a success that was reported", () => aFetchedCounter().reports("reported_success"), "success_reported"],
    ["a QR that was shown and cancelled", () => shown().cancels(), "qr_presented"],
    ["a QR that is shown", shown, "qr_presented"],
    ["a QR that is being asked for", () => aQrCounter().picks("dynamic_qr"), "qr_presented"],
    [
      "a declined hand-off that is being settled",
      () => aFetchedCounter().reports("reported_declined").attests(),
      "outcome_unknown",
    ],
    ["cash that is being settled", () => aServedCounter().picks("cash").attests(), "outcome_unknown"],
  ])("%s: the next collection asks, with the next number", (_what, before, reason) => {
    const counter = afterLoss(before());
    expect(reasonsOf(counter)).toEqual([[1_001, reason]]);
    expect(counter.picks("cash").reply).toMatchObject({ code: "money_may_have_moved", reason, earlierIntentId: 1_001 });
    expect(counter.picks("cash", { confirms: true, intentId: 1_002 }).intent).toMatchObject({ displayNumber: 2 });
  });

  it.each([
    ["cash that was not attested", () => aServedCounter().picks("cash")],
    ["a hand-off that was declined and cancelled", () => aFetchedCounter().reports("reported_declined").cancels()],
  ])("%s: the next collection does not ask", (_what, before) => {
    expect(afterLoss(before()).picks("cash").happened).toEqual(["intent_created"]);
  });

  it("the description and the collections are one commit: no collection comes between them", () => {
    const counter = restore(new Scenario(), collectionsOf(aFetchedCounter().station));
    expect(counter.commits.map(({ events }) => events)).toMatchObject([
      [
        { type: "station_changed" },
        {
          type: "collections_restored",
          reasons: [{ intentId: 1_001, reason: "handoff_presented" }],
          unclearThrough: 0,
          nextIntentNumber: 2,
        },
      ],
    ]);
  });

  it("a reason of a paid order: listed again among the older reasons, and the order is not unclear", () => {
    const before = aFetchedCounter().cancels().picks("cash", { confirms: true }).attests().settles();
    const counter = afterLoss(before);
    expect(reasonsOf(counter)).toEqual([]);
    expect(counter.station.olderReasons).toEqual([
      { orderId: ORDER.orderId, intentId: 1_001, reason: "handoff_presented" },
    ]);
  });

  it("reasons of several ended collections: the oldest collection first", () => {
    const ended = [1, 2].map(() => aFetchedCounter().reports("reported_declined").cancels().station.ended[0]);
    const [newest, oldest] = ended.map((intent, index) => {
      if (intent === undefined) throw new Error("none has ended");
      return { ...intent, intentId: 1_002 - index, reasonSinceEnd: "late_success" as const };
    });
    if (newest === undefined || oldest === undefined) throw new Error("none has ended");
    const { reasons } = collectionsOf({ ...aServedCounter().station, ended: [newest, oldest] });
    expect(reasons.map(({ intentId }) => intentId)).toEqual([1_001, 1_002]);
  });

  it("an order that is unclear only by the bound of ids: the next collection asks", () => {
    const counter = restore(aServedCounter(), { ...NOTHING, unclearThrough: ORDER.orderId });
    expect(counter.picks("cash").reply).toEqual(moneyRefusal({}));
  });
});

describe("a log that has lost its end", () => {
  it("a hand-off that is active again and was fetched: after its end, the next collection asks", () => {
    const lost = collectionsOf(aFetchedCounter().station);
    const counter = restore(aServedCounter().picks("smart_pos"), lost);
    expect(counter.intent).toMatchObject({ status: "created", moneyMayHaveMoved: "handoff_presented" });
    expect(reasonsOf(counter.cancels())).toEqual([[1_001, "handoff_presented"]]);
  });

  it("a hand-off that is active again and was not fetched: it has no reason", () => {
    const counter = aServedCounter().picks("smart_pos");
    expect(restore(counter, collectionsOf(counter.station)).happened).toEqual([]);
    expect(reasonsOf(counter.cancels())).toEqual([]);
  });

  it("a hand-off that is active again and has a reason: it keeps this reason", () => {
    const lost: LostCollections = {
      ...NOTHING,
      unclear: [{ orderId: ORDER.orderId, intentId: 1_001, reason: "handoff_presented" }],
    };
    const counter = restore(aFetchedCounter().reports("reported_success"), lost);
    expect(counter.intent).toMatchObject({ moneyMayHaveMoved: "success_reported" });
  });

  it("a success reported after the end: the ended collection has this reason again, and its order is unclear", () => {
    const ended = () => aFetchedCounter().reports("reported_declined").cancels();
    const lost = collectionsOf(ended().reports("reported_success").station);
    const counter = restore(ended(), lost);
    expect(counter.station.ended[0]).toMatchObject({ reasonSinceEnd: "late_success" });
    expect(reasonsOf(counter)).toEqual([[1_001, "late_success"]]);
  });

  it("an unknown outcome of a hand-off that ended in silence: a late decline does not end it", () => {
    const unknown = [{ orderId: ORDER.orderId, intentId: 1_001, reason: "outcome_unknown" as const }];
    const silent = aFetchedCounter().cancels();
    expect(reasonsOf(silent)).toEqual([[1_001, "handoff_presented"]]);
    const counter = restore(silent, { ...NOTHING, unclear: unknown, reasons: unknown }).reports("reported_declined");
    expect(counter.station.ended[0]).toMatchObject({ reasonSinceEnd: "outcome_unknown" });
    expect(reasonsOf(counter)).toEqual([[1_001, "outcome_unknown"]]);
  });

  it("the order has another current collection: its attestation asks", () => {
    const lost: LostCollections = {
      ...NOTHING,
      unclear: [{ orderId: ORDER.orderId, intentId: 900, reason: "success_reported" }],
    };
    const counter = restore(aServedCounter().picks("cash"), lost).attests();
    expect(counter.reply).toMatchObject({ code: "money_may_have_moved", earlierIntentId: 900 });
  });

  it("the same collections are restored again: nothing happens, and a confirmation stays valid", () => {
    const lost = collectionsOf(aFetchedCounter().cancels().station);
    const counter = afterLoss(aFetchedCounter().cancels()).picks("cash", { confirms: true, intentId: 1_002 });
    expect(restore(counter, lost).happened).toEqual([]);
    expect(counter.attests({ intentId: 1_002 }).happened).toEqual(["settlement_started"]);
  });
});
