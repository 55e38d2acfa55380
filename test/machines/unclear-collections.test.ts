/** A reason why money may have moved stays after later events: differing payments, displaced reports, blocked devices. */
import { describe, expect, it } from "vitest";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { unclearReason } from "../../machines/station/unclear-collections.ts";
import {
  aQrCounter,
  aServedCounter,
  COMPANION,
  COMPANION_DEVICE,
  ORDER,
  QR,
  reasonsOf,
  type Scenario,
} from "./scenario.ts";

const shown = (): Scenario => aQrCounter().picks("dynamic_qr").waits(300).givesQr().waits(5_000);
const DIFFERS = [[1_001, "money_differs"]];

describe("a payment that differs from the registered one", () => {
  it("displays hide the QR until the provider reports that nothing moved, and the correct payment still settles it", () => {
    const counter = shown();
    expect(counter.display).toMatchObject({ state: "qr", qr_payload: QR });
    expect(counter.differs().display).toMatchObject({ state: "total", qr_payload: "", amount: "12.50" });
    expect(counter.clears().display).toMatchObject({ state: "qr", qr_payload: QR });
    expect(counter.differs("currency_mismatch").confirms().settles().intent?.status).toBe("succeeded");
  });

  it.each([
    ["the provider declines it afterwards", (counter: Scenario) => counter.fails("provider_expired")],
    ["the provider reports that the buyer cancelled", (counter: Scenario) => counter.fails("buyer_cancelled")],
    ["the cashier cancels", (counter: Scenario) => counter.cancels()],
    ["the deadline passes", (counter: Scenario) => counter.waits(180_000).ticks()],
  ])("the order stays unclear when %s", (_what, ends) => {
    const counter = ends(shown().differs());
    expect(reasonsOf(counter)).toEqual(DIFFERS);
    expect(counter.leased().picks("cash").reply).toMatchObject({
      code: "money_may_have_moved",
      earlierIntentId: 1_001,
    });
  });

  it("an active intent: it is marked and keeps its status", () => {
    const counter = shown().differs("account_mismatch");
    expect(counter.commits.at(-1)?.events).toEqual([
      { type: "money_differs", intentId: 1_001, issue: "account_mismatch", status: "presented" },
    ]);
    expect(counter.intent).toMatchObject({ status: "presented", moneyMayHaveMoved: "money_differs" });
    expect(counter.station.unclearCollections).toEqual([]);
  });

  it("an ended intent: its order is unclear at once, also after the provider's decline", () => {
    const counter = shown().fails("payment_declined").differs();
    expect([counter.happened, reasonsOf(counter)]).toEqual([["money_differs"], DIFFERS]);
  });

  it("an intent that has a reason already: it has both, and another collection of the order removes neither", () => {
    const counter = shown().cancels().differs();
    const both = [
      [1_001, "qr_presented"],
      [1_001, "money_differs"],
    ];
    expect(reasonsOf(counter)).toEqual(both);
    counter.picks("dynamic_qr", { confirms: true }).givesQr({ reference: "PAY-2" }).cancels();
    expect(reasonsOf(counter)).toEqual([...both, [1_002, "qr_presented"]]);
    expect(reasonsOf(counter.clears(1_002))).toEqual(both);
    expect(reasonsOf(counter.clears(1_001))).toEqual([]);
  });

  it("a payment that is only late: its reason is late money; after the provider cleared it, it counts again", () => {
    const LATE = [1_001, "late_money"];
    const counter = shown().fails("payment_declined").confirms();
    expect(reasonsOf(counter)).toEqual([LATE]);
    expect([counter.differs("late_money").happened, reasonsOf(counter)]).toEqual([[], [LATE]]);
    expect([counter.clears().differs("late_money").happened, reasonsOf(counter)]).toEqual([["money_differs"], [LATE]]);
    expect(reasonsOf(counter.differs("amount_mismatch"))).toEqual([LATE, ...DIFFERS]);
  });

  it("the same report again: nothing happens; after the provider cleared it, the report counts again", () => {
    const counter = shown().differs("amount_mismatch", { key: "a" });
    expect(counter.differs("amount_mismatch", { key: "a" }).happened).toEqual([]);
    expect(counter.clears().differs("amount_mismatch", { key: "a" }).happened).toEqual(["money_differs"]);
    counter.fails("provider_expired");
    expect(counter.differs("amount_mismatch", { key: "a" }).happened).toEqual([]);
    expect(reasonsOf(counter.clears().differs("amount_mismatch", { key: "a" }))).toEqual(DIFFERS);
  });

  it("the provider reports that nothing moved: the reason is removed, before the intent's end and after it", () => {
    const before = shown().differs().clears();
    expect([before.happened, before.intent?.moneyMayHaveMoved]).toEqual([["unclear_resolved"], ""]);
    expect(reasonsOf(before.fails("provider_expired"))).toEqual([]);
    const after = shown().differs().fails("provider_expired");
    expect(reasonsOf(after)).toEqual(DIFFERS);
    expect(after.clears().picks("cash").happened).toEqual(["intent_created"]);
  });

  it("the correct payment comes too: the intent succeeds, and the reason is removed", () => {
    const counter = shown().differs().confirms().settles();
    expect([counter.intent?.status, counter.station.unclearCollections]).toEqual(["succeeded", []]);
    counter.differs("duplicate_money");
    expect([counter.happened, counter.station.unclearCollections]).toEqual([["money_differs"], []]);
  });

  it("an intent that has left the state and that the host recalled: the reason is stored", () => {
    const counter = shown().cancels().clears();
    const { intent: recalled, intentId } = counter;
    for (let made = 0; made < STATE_LIMITS.replies; made += 1) counter.picks("cash", { confirms: true }).cancels();
    expect(counter.differs("amount_mismatch", { intentId }).reply).toMatchObject({ code: "intent_unknown" });
    counter.recalled = recalled;
    expect(reasonsOf(counter.differs("amount_mismatch", { intentId }))).toEqual(DIFFERS);
  });

  it("an intent that has left the state: the provider's report removes the reason, a decline does not", () => {
    const counter = shown().cancels();
    for (let made = 0; made < STATE_LIMITS.endedIntents; made += 1) counter.picks("cash", { confirms: true }).cancels();
    const refused = counter.fails("provider_expired", { intentId: 1_001 }).reply;
    expect([refused, reasonsOf(counter)]).toEqual([{ ok: false, code: "intent_unknown" }, [[1_001, "qr_presented"]]]);
    expect(reasonsOf(counter.clears(1_001))).toEqual([]);
  });

  it("a success that a companion reported: the provider's report does not remove it", () => {
    const counter = aServedCounter().picks("smart_pos").fetches().reports("reported_success").cancels().clears();
    expect([counter.happened, reasonsOf(counter)]).toEqual([[], [[1_001, "success_reported"]]]);
  });

  it("a report by a companion, or about another route: refused as an unknown intent", () => {
    expect(shown().differs("amount_mismatch", { by: COMPANION }).reply).toMatchObject({ code: "intent_unknown" });
    expect(aServedCounter().picks("smart_pos").differs().reply).toMatchObject({ code: "intent_unknown" });
  });
});

describe("a report that money may have moved", () => {
  it.each([
    ["reported_unknown", "outcome_unknown"],
    ["reported_success", "success_reported"],
  ] as const)("%s: it stays after any number of other reports", (outcome, reason) => {
    const counter = aServedCounter().picks("smart_pos").fetches().reports(outcome);
    for (let made = 0; made <= STATE_LIMITS.activeReports; made += 1) counter.reports("reported_declined");
    expect(counter.intent?.reports.map((report) => report.outcome)).not.toContain(outcome);
    expect(reasonsOf(counter.cancels())).toEqual([[1_001, reason]]);
  });
});

describe("an attestation that the seam refused", () => {
  const slip = (): Scenario => aServedCounter().picks("attested_terminal").attests({ reference: "T-0042" });
  const declined = (): Scenario =>
    aServedCounter().picks("smart_pos").fetches().reports("reported_declined").attests({ reference: "T-0042" });
  const UNKNOWN = [[1_001, "outcome_unknown"]];

  it.each([
    ["a slip, the order has changed", () => slip().refusesToSettle("order_changed").cancels()],
    [
      "a slip, its reference has settled another order",
      () => slip().refusesToSettle("reference_already_used").cancels(),
    ],
    ["a slip, the deadline passes first", () => slip().waits(180_000).refusesToSettle("order_changed").leased()],
    ["a slip after a reported decline", () => declined().refusesToSettle("order_changed").cancels()],
    ["the same, and a late decline", () => declined().refusesToSettle().cancels().reports("reported_declined")],
  ])("%s: the next collection of the order needs a confirmation", (_what, build) => {
    const counter = build();
    expect(reasonsOf(counter)).toEqual(UNKNOWN);
    expect(counter.picks("cash").reply).toMatchObject({ code: "money_may_have_moved", reason: "outcome_unknown" });
  });

  it.each(["order_voided", "order_already_paid"] as const)("a slip, %s: the collection keeps the reason", (code) => {
    const counter = slip().order({ status: code === "order_voided" ? "voided" : "paid", revision: 2 });
    expect(counter.refusesToSettle(code).intent).toMatchObject({ reasonSinceEnd: "outcome_unknown", endReason: code });
    expect(reasonsOf(counter)).toEqual([]);
  });

  it("a slip after a reported success: the stronger reason stays", () => {
    const counter = aServedCounter().picks("smart_pos").reports("reported_success").attests().refusesToSettle();
    expect(reasonsOf(counter.cancels())).toEqual([[1_001, "success_reported"]]);
  });

  it("cash, and a slip that is settled later: the order is not unclear", () => {
    expect(reasonsOf(aServedCounter().picks("cash").attests().refusesToSettle().cancels())).toEqual([]);
    const counter = slip().refusesToSettle().attests({ reference: "T-0042" }).settles();
    expect([counter.intent?.status, reasonsOf(counter)]).toEqual(["succeeded", []]);
    expect(unclearReason(counter.intent ?? expect.unreachable(), counter.station)).toBe("");
  });
});

describe("a report of a blocked device", () => {
  const frozen = (): Scenario =>
    aServedCounter()
      .picks("smart_pos")
      .fetches()
      .freezes({ devices: new Set([COMPANION.id]) });

  it("refused with the reason and kept as evidence, and its order is unclear once the collection ends", () => {
    const counter = frozen().reports("reported_success", { reference: "RRN-1", code: "00" });
    expect(counter.reply).toEqual({ ok: false, code: "device_frozen" });
    expect(counter.commits.at(-1)?.events).toEqual([
      {
        type: "late_evidence_kept",
        intentId: 1_001,
        deviceId: COMPANION.id,
        outcome: "reported_success",
        providerReference: "RRN-1",
        providerCode: "00",
        status: "presented",
        blockedReason: "device_frozen",
      },
    ]);
    expect(counter.intent).toMatchObject({ status: "presented", reportCount: 0, moneyMayHaveMoved: "late_success" });
    expect(reasonsOf(counter.cancels())).toEqual([[1_001, "late_success"]]);
  });

  it.each([
    ["a report of a blocked device", () => frozen()],
    ["a report after the end", () => aServedCounter().picks("smart_pos").cancels()],
  ])("%s: the same content is stored once under any key, and all within a bound", (_what, begin) => {
    const counter = begin();
    const kept: string[] = [];
    const report = (outcome: "reported_success" | "reported_declined", reference: string, key: string): void => {
      const commits = counter.commits.length;
      counter.reports(outcome, { reference, key });
      expect(counter.reply?.ok).toBe(false);
      kept.push(...counter.commits.slice(commits).flatMap((commit) => commit.events.map((event) => event.type)));
    };
    for (let turn = 0; turn < 26; turn += 1) report("reported_declined", "RRN-1", `key:${turn % 2}:${turn}`);
    expect(kept).toEqual(["late_evidence_kept"]);
    for (let turn = 0; turn < 26; turn += 1) report("reported_declined", `RRN-${turn}`, `more:${turn}`);
    expect(kept).toHaveLength(STATE_LIMITS.lateEvidencePerIntent);
    // Declines do not displace a report that money may have moved.
    for (let turn = 0; turn < 26; turn += 1) report("reported_success", `RRN-${turn}`, `success:${turn}`);
    expect(kept).toHaveLength(2 * STATE_LIMITS.lateEvidencePerIntent);
    if (counter.station.intent !== null) counter.cancels();
    expect(reasonsOf(counter)).toEqual([[1_001, "late_success"]]);
  });

  it("an ended collection: an unknown outcome makes its order unclear at once, and a decline does not", () => {
    expect(reasonsOf(frozen().cancels().reports("reported_unknown"))).toEqual([[1_001, "late_evidence"]]);
    const declined = frozen().reports("reported_declined");
    expect([declined.happened, declined.intent?.moneyMayHaveMoved]).toEqual([["late_evidence_kept"], ""]);
  });

  it("the same report again: stored once, and accepted under the same key when the block has ended", () => {
    const counter = frozen().reports("reported_success", { key: "k" });
    expect(counter.reports("reported_success", { key: "k" }).happened).toEqual([]);
    expect(counter.reply).toEqual({ ok: false, code: "device_frozen" });
    expect(counter.freezes({}).reports("reported_success", { key: "k" }).happened).toEqual(["outcome_reported"]);
  });

  it("a block that only the gateway or only the station knows: the report is refused", () => {
    const known = aServedCounter().picks("smart_pos").reports("reported_unknown", { blocked: "platform_frozen" });
    expect([known.reply, known.happened]).toEqual([{ ok: false, code: "platform_frozen" }, ["late_evidence_kept"]]);
    const suspended = aServedCounter()
      .picks("smart_pos")
      .describesDevice({ ...COMPANION_DEVICE, status: "suspended", revision: 2 });
    expect(suspended.reports("reported_success").reply).toEqual({ ok: false, code: "device_suspended" });
  });

  it("about an unknown intent: refused with the reason and not stored", () => {
    const counter = frozen().reports("reported_success", { intentId: 4_711 });
    expect([counter.reply, counter.happened]).toEqual([{ ok: false, code: "device_frozen" }, []]);
  });
});

describe("an order that is paid by another route", () => {
  const paid = (counter: Scenario): Scenario => counter.order({ status: "paid", revision: 2 });

  it.each([
    ["smart_pos", "created", "", () => aServedCounter().picks("smart_pos")],
    ["smart_pos", "presented", "handoff_presented", () => aServedCounter().picks("smart_pos").fetches()],
    ["dynamic_qr", "created", "", () => aQrCounter().picks("dynamic_qr")],
    ["dynamic_qr", "presented", "qr_presented", () => shown()],
    ["dynamic_qr", "presented with a differing payment", "money_differs", () => shown().differs()],
    ["cash", "created", "", () => aServedCounter().picks("cash")],
  ] as const)(
    "a %s collection that is %s: it ends, and keeps why money may have moved: '%s'",
    (route, _at, mark, build) => {
      const counter = paid(build());
      expect(counter.happened).toEqual(["order_cleared", "intent_overtaken"]);
      expect(counter.intent).toMatchObject({
        status: "cancelled",
        endReason: "order_already_paid",
        moneyMayHaveMoved: mark,
      });
      expect(counter.commits.at(-1)?.events[1]).toMatchObject({ moneyMayHaveMoved: mark !== "" });
      expect(counter.station.unreportedEnds).toEqual(route === "dynamic_qr" ? [1_001] : []);
      expect(counter.station.unclearCollections).toEqual([]);
    },
  );

  it("a collection with a reported success or a confirmation: it does not end", () => {
    expect(paid(aServedCounter().picks("smart_pos").reports("reported_success")).intent?.status).toBe("processing");
    expect(paid(shown().confirms()).settles().intent?.status).toBe("succeeded");
    expect(paid(shown().confirms().refusesToSettle()).intent?.status).toBe("processing");
  });

  it("collections of another order: do not end", () => {
    expect(shown().order({ orderId: 502, status: "paid" }).intent?.status).toBe("presented");
    expect(shown().order({ orderId: 502, status: "voided" }).intent?.status).toBe("presented");
  });

  it("the seam has settled an earlier, cancelled collection: the current collection ends too", () => {
    const counter = shown().cancels();
    const { intentId: earlier } = counter;
    counter.picks("smart_pos", { confirms: true }).settles(9_001, earlier);
    expect(counter.happened).toEqual(["settlement_conflict", "intent_overtaken"]);
    expect(counter.intent).toMatchObject({ status: "cancelled", endReason: "order_already_paid" });
  });

  it("a query whether the order is being collected: answered without a commit", () => {
    const counter = shown();
    expect(counter.inquires().reply).toEqual({ ok: false, code: "collection_active", status: "presented" });
    expect(counter.happened).toEqual([]);
    expect(counter.inquires(502).reply).toEqual({ ok: true, type: "accepted" });
    expect(counter.cancels().inquires().reply).toEqual({ ok: true, type: "accepted" });
  });
});

describe("an order that is voided", () => {
  const voided = (counter: Scenario): Scenario => counter.order({ status: "voided", revision: 2 });

  it.each([
    ["smart_pos", "created", "", () => aServedCounter().picks("smart_pos")],
    ["smart_pos", "presented", "handoff_presented", () => aServedCounter().picks("smart_pos").fetches()],
    ["dynamic_qr", "created", "", () => aQrCounter().picks("dynamic_qr")],
    ["dynamic_qr", "presented", "qr_presented", () => shown()],
    ["attested_terminal", "created", "", () => aServedCounter().picks("attested_terminal")],
  ] as const)(
    "a %s collection that is %s: it ends, and keeps why money may have moved: '%s'",
    (route, _at, mark, build) => {
      const counter = voided(build());
      expect(counter.commits.at(-1)?.events).toEqual([
        { type: "order_cleared", orderId: 501, status: "voided" },
        {
          type: "intent_overtaken",
          intentId: 1_001,
          orderId: 501,
          reason: "order_voided",
          moneyMayHaveMoved: mark !== "",
        },
      ]);
      expect(counter.intent).toMatchObject({ status: "cancelled", endReason: "order_voided", moneyMayHaveMoved: mark });
      expect(counter.station.unreportedEnds).toEqual(route === "dynamic_qr" ? [1_001] : []);
      // A voided order is not collected again, so the cashier has nothing to confirm.
      expect(counter.station.unclearCollections).toEqual([]);
      expect(counter.display).toMatchObject({ state: "idle", qr_payload: "" });
    },
  );

  it("voided before the seam answers: the collection ends when the seam refuses", () => {
    const counter = voided(aServedCounter().picks("cash").attests());
    expect(counter.intent?.status).toBe("settling");
    counter.refusesToSettle("order_voided");
    expect(counter.happened).toEqual(["settlement_refused", "intent_overtaken"]);
    expect(counter.reply).toEqual({ ok: false, code: "order_voided", status: "cancelled" });
  });

  it("a collection with a reported success or a refused confirmation: it stays for the cashier", () => {
    expect(voided(aServedCounter().picks("smart_pos").reports("reported_success")).intent?.status).toBe("processing");
    expect(voided(shown().confirms()).refusesToSettle("order_voided").intent?.status).toBe("processing");
  });
});

describe("an order whose amount changes", () => {
  const changed = (counter: Scenario): Scenario => counter.order({ amountMinor: "1300", revision: 2 });

  it("a shown QR, which contains the amount: it ends, and the next QR needs a confirmation or the provider's report", () => {
    const counter = changed(shown());
    expect(counter.commits.at(-1)?.events).toEqual([
      { type: "order_shown", orderId: 501, amountMinor: "1300", currency: "EUR" },
      { type: "intent_overtaken", intentId: 1_001, orderId: 501, reason: "order_changed", moneyMayHaveMoved: true },
    ]);
    expect(counter.intent).toMatchObject({ status: "cancelled", endReason: "order_changed" });
    expect([counter.station.unreportedEnds, reasonsOf(counter)]).toEqual([[1_001], [[1_001, "qr_presented"]]]);
    expect(counter.display).toMatchObject({ state: "total", amount: "13.00", qr_payload: "" });
    expect(counter.picks("dynamic_qr").reply).toMatchObject({ code: "money_may_have_moved", earlierIntentId: 1_001 });
    expect(counter.clears(1_001).picks("dynamic_qr").happened).toEqual(["intent_created"]);
  });

  it("a QR that the provider has not returned: it ends, and the order is not unclear", () => {
    const counter = changed(aQrCounter().picks("dynamic_qr"));
    expect(counter.intent).toMatchObject({ status: "cancelled", endReason: "order_changed", moneyMayHaveMoved: "" });
    expect([counter.station.unreportedEnds, reasonsOf(counter)]).toEqual([[1_001], []]);
  });

  it("a QR: it ends with another currency, and stays when the total is the same", () => {
    expect(shown().order({ currency: "USD", revision: 2 }).intent?.status).toBe("cancelled");
    expect(shown().order({ revision: 2 }).intent?.status).toBe("presented");
  });

  it("a QR with a newer amount than the description: it stays until a still newer description changes the amount", () => {
    const order = { ...ORDER, amountMinor: "1400", revision: 3 };
    const counter = aQrCounter().picks("dynamic_qr", { order }).givesQr();
    expect(changed(counter).intent?.status).toBe("presented");
    expect(counter.order({ amountMinor: "1400", revision: 3 }).intent?.status).toBe("presented");
    expect(counter.order({ amountMinor: "1500", revision: 4 }).intent?.endReason).toBe("order_changed");
  });

  it("other routes and a confirmed QR: they stay", () => {
    expect(changed(aServedCounter().picks("smart_pos").fetches()).intent?.status).toBe("presented");
    expect(changed(aServedCounter().picks("attested_terminal")).intent?.status).toBe("created");
    expect(changed(shown().confirms()).refusesToSettle().intent?.status).toBe("processing");
  });
});

describe("M26 the end of a QR", () => {
  it("stays unreported until the providers service has received it, once for each", () => {
    const counter = shown().cancels().picks("dynamic_qr", { confirms: true }).fails("provider_timed_out");
    expect(counter.station.unreportedEnds).toEqual([1_001, 1_002]);
    expect(counter.reportsEnd(1_001).station.unreportedEnds).toEqual([1_002]);
    expect(counter.reportsEnd(1_001).happened).toEqual([]);
    expect(counter.reportsEnd(1_002).station.unreportedEnds).toEqual([]);
  });

  it("a paid QR, or another route: nothing to report", () => {
    expect(shown().confirms().settles().station.unreportedEnds).toEqual([]);
    expect(aServedCounter().picks("smart_pos").cancels().station.unreportedEnds).toEqual([]);
  });

  it("more ends than the bound: the oldest are dropped; the providers service finds them by their deadline", () => {
    const counter = aQrCounter();
    for (let made = 0; made < STATE_LIMITS.unreportedEnds + 2; made += 1) counter.picks("dynamic_qr").cancels();
    expect([counter.station.unreportedEnds.length, counter.station.unreportedEnds[0]]).toEqual([
      STATE_LIMITS.unreportedEnds,
      1_003,
    ]);
  });
});
