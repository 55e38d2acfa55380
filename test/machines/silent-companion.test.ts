/** A companion that has fetched a collection and then reports nothing: the guest may have paid, so the next collection asks. */
import { describe, expect, it } from "vitest";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { moneyRefusal } from "./money-refusal.ts";
import {
  aFetchedCounter,
  aQrCounter,
  aServedCounter,
  COMPANION,
  COMPANION_DEVICE,
  reasonsOf,
  type Scenario,
} from "./scenario.ts";

const SILENT = [[1_001, "handoff_presented"]];
const LIFETIME_MS = 180_000;
const frozen = (counter: Scenario): Scenario => counter.freezes({ devices: new Set([COMPANION.id]) });

describe("a hand-off that was presented and ends without a report", () => {
  it.each([
    ["the cashier cancels", (counter: Scenario) => counter.cancels()],
    ["its deadline passes", (counter: Scenario) => counter.waits(LIFETIME_MS).ticks()],
    [
      "its deadline passes while its device is frozen",
      (counter: Scenario) => frozen(counter).waits(LIFETIME_MS).ticks(),
    ],
    [
      "the cashier cancels while the platform is frozen",
      (counter: Scenario) => counter.freezes({ platform: true }).cancels(),
    ],
    [
      "its device is suspended and its deadline passes",
      (counter: Scenario) =>
        counter
          .describesDevice({ ...COMPANION_DEVICE, status: "suspended", revision: 2 })
          .waits(LIFETIME_MS)
          .ticks(),
    ],
    [
      "its device is revoked and the cashier cancels",
      (counter: Scenario) => counter.describesDevice({ ...COMPANION_DEVICE, status: "revoked", revision: 2 }).cancels(),
    ],
  ])("%s: the next collection of the order asks for confirmation and names the reason", (_what, ends) => {
    const counter = ends(aFetchedCounter());
    expect(reasonsOf(counter)).toEqual(SILENT);
    counter.freezes({}).leased();
    const refusal = moneyRefusal({ reason: "handoff_presented", earlierIntentId: 1_001 });
    expect(counter.picks("cash").reply).toEqual(refusal);
    expect(counter.picks("attested_terminal", { confirms: false }).reply).toEqual(refusal);
    expect(counter.picks("cash", { confirms: true }).happened).toEqual([
      "intent_created",
      "second_collection_confirmed",
    ]);
  });

  it("its deadline is found overdue by the next collection: that collection asks", () => {
    expect(aFetchedCounter().waits(LIFETIME_MS).leased().picks("cash").reply).toMatchObject({
      code: "money_may_have_moved",
    });
  });

  it("the order is paid after the confirmation: no collection is unclear any more", () => {
    const counter = aFetchedCounter().cancels().picks("cash", { confirms: true }).attests().settles();
    expect(counter.station.unclearCollections).toEqual([]);
  });

  it("it was never fetched: the next collection does not ask", () => {
    expect(aServedCounter().picks("smart_pos").cancels().picks("cash").happened).toEqual(["intent_created"]);
  });

  it.each(["reported_declined", "reported_cancelled"] as const)(
    "its companion sent %s before the end: the next collection does not ask",
    (outcome) => {
      expect(aFetchedCounter().reports(outcome).cancels().picks("cash").happened).toEqual(["intent_created"]);
    },
  );

  it("its companion reported an unknown outcome before the end: the next collection asks with that reason", () => {
    const counter = aFetchedCounter().reports("reported_declined").reports("reported_unknown").cancels();
    expect(counter.picks("cash").reply).toMatchObject({ code: "money_may_have_moved", reason: "outcome_unknown" });
  });
});

describe("a report that comes after the silent end", () => {
  it.each(["reported_declined", "reported_cancelled"] as const)(
    "%s: it is refused, kept, and the next collection does not ask",
    (outcome) => {
      const counter = aFetchedCounter().waits(LIFETIME_MS).ticks().reports(outcome, { code: "51" });
      expect(counter.reply).toEqual({ ok: false, code: "intent_not_actionable", status: "expired" });
      expect(counter.happened).toEqual(["late_evidence_kept", "unclear_resolved"]);
      expect(counter.leased().picks("cash").happened).toEqual(["intent_created"]);
    },
  );

  it("a decline comes when the deadline is overdue: the collection expires and is cleared in one commit", () => {
    const counter = aFetchedCounter().waits(LIFETIME_MS).reports("reported_declined");
    expect(counter.happened).toEqual(["intent_expired", "late_evidence_kept", "unclear_resolved"]);
    expect(counter.station.unclearCollections).toEqual([]);
  });

  it("a success: the reason becomes stronger, and a later decline does not remove it", () => {
    const counter = aFetchedCounter().cancels().reports("reported_success", { reference: "RRN-1" });
    expect([counter.happened, reasonsOf(counter)]).toEqual([["late_evidence_kept"], [[1_001, "late_success"]]]);
    expect(counter.reports("reported_declined").happened).toEqual(["late_evidence_kept"]);
    expect(counter.picks("cash").reply).toMatchObject({ code: "money_may_have_moved", reason: "late_success" });
  });

  it("an unknown outcome: the next collection still asks, and a later decline does not remove it", () => {
    const counter = aFetchedCounter().cancels().reports("reported_unknown");
    expect(reasonsOf(counter)).toEqual([[1_001, "late_evidence"]]);
    counter.reports("reported_declined");
    expect(counter.picks("cash").reply).toMatchObject({ code: "money_may_have_moved", reason: "late_evidence" });
  });

  it("a success and an unknown outcome, in either order: the success is the named reason", () => {
    const late = [
      [1_001, "late_evidence"],
      [1_001, "late_success"],
    ];
    const counter = aFetchedCounter().cancels().reports("reported_unknown").reports("reported_success");
    expect(reasonsOf(counter)).toEqual(late);
    expect(counter.picks("cash").reply).toMatchObject({ reason: "late_success" });
    const reversed = aFetchedCounter().cancels().reports("reported_success").reports("reported_unknown");
    expect(reversed.picks("cash").reply).toMatchObject({ reason: "late_success" });
  });

  it("from a blocked device: a decline clears nothing until the block ends, a success counts at once", () => {
    const declined = frozen(aFetchedCounter().cancels()).reports("reported_declined", { key: "k" });
    expect([declined.happened, reasonsOf(declined)]).toEqual([["late_evidence_kept"], SILENT]);
    // The station has stored the report. It accepts the same report when the block has ended.
    expect(declined.freezes({}).reports("reported_declined", { key: "k" }).happened).toEqual(["unclear_resolved"]);
    expect(declined.station.unclearCollections).toEqual([]);
    const success = frozen(aFetchedCounter().cancels()).reports("reported_success");
    expect(reasonsOf(success)).toEqual([[1_001, "late_success"]]);
  });

  it("the same decline again: nothing happens, and the reply is the same", () => {
    const counter = aFetchedCounter().cancels().reports("reported_declined", { key: "k" });
    const { reply } = counter;
    expect(counter.reports("reported_declined", { key: "k" }).repeated).toBe(true);
    expect([counter.reports("reported_declined").happened, counter.reply]).toEqual([[], reply]);
  });

  it("about an intent that the host recalled: a decline removes its reason too", () => {
    const counter = aFetchedCounter().cancels();
    const { intent: recalled } = counter;
    for (let made = 0; made < STATE_LIMITS.endedIntents; made += 1) counter.picks("cash", { confirms: true }).cancels();
    counter.recalled = recalled;
    expect(counter.reports("reported_declined", { intentId: 1_001 }).happened).toEqual([
      "late_evidence_kept",
      "unclear_resolved",
    ]);
    expect(counter.picks("cash").happened).toEqual(["intent_created"]);
  });

  it("a decline about a later collection of the order: the silent collection stays unclear", () => {
    const counter = aFetchedCounter()
      .cancels()
      .picks("smart_pos", { confirms: true })
      .fetches()
      .reports("reported_declined");
    expect(reasonsOf(counter.cancels().reports("reported_declined"))).toEqual(SILENT);
  });
});

describe("two collections of one order that may both have moved money", () => {
  it("the newer one is silent and the older one reported a success: the success is named", () => {
    const counter = aFetchedCounter().reports("reported_success").cancels();
    counter.picks("smart_pos", { confirms: true }).fetches().cancels();
    expect(counter.picks("cash").reply).toEqual(moneyRefusal({ reason: "success_reported", earlierIntentId: 1_001 }));
  });
});

describe("a silent hand-off whose order was voided or paid by another route", () => {
  const voided = (): Scenario => aFetchedCounter().order({ status: "voided", revision: 2 });

  it("a late decline: removes the reason of the collection", () => {
    const counter = voided();
    expect(counter.intent?.reasonSinceEnd).toBe("handoff_presented");
    expect(counter.reports("reported_declined").happened).toEqual(["late_evidence_kept", "unclear_resolved"]);
    expect(counter.intent?.reasonSinceEnd).toBe("");
  });

  it.each([
    ["reported_success", "late_success"],
    ["reported_unknown", "late_evidence"],
  ] as const)("a late %s: the reason of the collection becomes %s", (outcome, reason) => {
    const counter = voided().reports(outcome);
    expect([counter.happened, counter.intent?.reasonSinceEnd]).toEqual([["late_evidence_kept"], reason]);
    expect(counter.station.unclearCollections).toEqual([]);
    expect(counter.reports("reported_declined").intent?.reasonSinceEnd).toBe(reason);
  });

  it("a hand-off that was never fetched, and a late reported_success: the reason is late_success", () => {
    const counter = aServedCounter().picks("smart_pos").order({ status: "paid", revision: 2 });
    expect(counter.reports("reported_success").intent?.reasonSinceEnd).toBe("late_success");
  });
});

describe("an order that another collection has paid", () => {
  const reasonOf = ({ station }: Scenario, intentId = 1_001) =>
    station.ended.find((intent) => intent.intentId === intentId)?.reasonSinceEnd;
  const paidInCash = (counter: Scenario): Scenario =>
    counter.cancels().picks("cash", { confirms: true }).attests().settles();

  it.each([
    ["is silent", (counter: Scenario) => counter, "handoff_presented"],
    ["reported a success", (counter: Scenario) => counter.reports("reported_success"), "success_reported"],
    ["reported an unknown outcome", (counter: Scenario) => counter.reports("reported_unknown"), "outcome_unknown"],
    ["reported a decline", (counter: Scenario) => counter.reports("reported_declined"), ""],
  ] as const)(
    "the earlier collection %s: it keeps its reason, and a late success is named there",
    (_what, reports, reason) => {
      const counter = paidInCash(reports(aFetchedCounter()));
      expect([reasonOf(counter), reasonsOf(counter)]).toEqual([reason, []]);
      counter.reports("reported_success", { intentId: 1_001, reference: "RRN-9" });
      expect([counter.happened, reasonOf(counter), reasonsOf(counter)]).toEqual([
        ["late_evidence_kept"],
        "late_success",
        [],
      ]);
      expect(counter.reports("reported_declined", { intentId: 1_001 }).happened).toEqual(["late_evidence_kept"]);
      expect([reasonOf(counter), reasonOf(counter, 1_002)]).toEqual(["late_success", ""]);
    },
  );

  it("the earlier collection was silent, and its companion declines late: its reason is removed", () => {
    const counter = paidInCash(aFetchedCounter()).reports("reported_declined", { intentId: 1_001 });
    expect([counter.happened, reasonOf(counter)]).toEqual([["late_evidence_kept", "unclear_resolved"], ""]);
  });

  it("the earlier collection is a QR: late money is its reason until the provider withdraws it", () => {
    const counter = paidInCash(aQrCounter().picks("dynamic_qr").givesQr());
    expect(reasonOf(counter)).toBe("qr_presented");
    expect(reasonOf(counter.confirms({ intentId: 1_001 }))).toBe("late_money");
    expect(reasonOf(counter.differs("amount_mismatch", { intentId: 1_001 }))).toBe("money_differs");
    expect([counter.clears(1_001).happened, reasonOf(counter)]).toEqual([["unclear_resolved"], ""]);
  });

  it("an unknown outcome after a reported success: the success stays the reason", () => {
    const counter = paidInCash(aFetchedCounter().reports("reported_success")).reports("reported_unknown", {
      intentId: 1_001,
    });
    expect(reasonOf(counter)).toBe("success_reported");
  });
});
