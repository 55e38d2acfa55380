/** A reason why money may have moved stays after later events: differing payments, displaced reports, blocked devices. */
import { describe, expect, it } from "vitest";
import { STATE_LIMITS } from "../../machines/settings.ts";
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
  it("no display shows the QR until the provider reports that nothing moved, and the right payment still pays", () => {
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

  it("marks its intent without a transition", () => {
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

  it("kept beside earlier reasons, and another collection of the order removes neither", () => {
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

  it("a payment that is only late: late money, and reported again after it was cleared", () => {
    const LATE = [1_001, "late_money"];
    const counter = shown().fails("payment_declined").confirms();
    expect(reasonsOf(counter)).toEqual([LATE]);
    expect([counter.differs("late_money").happened, reasonsOf(counter)]).toEqual([[], [LATE]]);
    // Once it was cleared, it is reported again.
    expect([counter.clears().differs("late_money").happened, reasonsOf(counter)]).toEqual([["money_differs"], [LATE]]);
    expect(reasonsOf(counter.differs("amount_mismatch"))).toEqual([LATE, ...DIFFERS]);
  });

  it("reported once while it holds, and again under the same id after it was cleared", () => {
    const counter = shown().differs("amount_mismatch", { key: "a" });
    expect(counter.differs("amount_mismatch", { key: "a" }).happened).toEqual([]);
    expect(counter.clears().differs("amount_mismatch", { key: "a" }).happened).toEqual(["money_differs"]);
    counter.fails("provider_expired");
    expect(counter.differs("amount_mismatch", { key: "a" }).happened).toEqual([]);
    expect(reasonsOf(counter.clears().differs("amount_mismatch", { key: "a" }))).toEqual(DIFFERS);
  });

  it("cleared only by the provider's report, before the end and after it", () => {
    const before = shown().differs().clears();
    expect([before.happened, before.intent?.moneyMayHaveMoved]).toEqual([["unclear_resolved"], ""]);
    expect(reasonsOf(before.fails("provider_expired"))).toEqual([]);
    const after = shown().differs().fails("provider_expired");
    expect(reasonsOf(after)).toEqual(DIFFERS);
    expect(after.clears().picks("cash").happened).toEqual(["intent_created"]);
  });

  it("the right payment: succeeds, and its success ends the reason", () => {
    const counter = shown().differs().confirms().settles();
    expect([counter.intent?.status, counter.station.unclearCollections]).toEqual(["succeeded", []]);
    counter.differs("duplicate_money");
    expect([counter.happened, counter.station.unclearCollections]).toEqual([["money_differs"], []]);
  });

  it("kept for an intent that the state has dropped and the host has recalled", () => {
    const counter = shown().cancels().clears();
    const { intent: recalled, intentId } = counter;
    for (let made = 0; made < STATE_LIMITS.replies; made += 1) counter.picks("cash", { confirms: true }).cancels();
    expect(counter.differs("amount_mismatch", { intentId }).reply).toMatchObject({ code: "intent_unknown" });
    counter.recalled = recalled;
    expect(reasonsOf(counter.differs("amount_mismatch", { intentId }))).toEqual(DIFFERS);
  });

  it("a dropped intent: the provider's report still clears it, and a decline no longer does", () => {
    const counter = shown().cancels();
    for (let made = 0; made < STATE_LIMITS.endedIntents; made += 1) counter.picks("cash", { confirms: true }).cancels();
    const refused = counter.fails("provider_expired", { intentId: 1_001 }).reply;
    expect([refused, reasonsOf(counter)]).toEqual([{ ok: false, code: "intent_unknown" }, [[1_001, "qr_presented"]]]);
    expect(reasonsOf(counter.clears(1_001))).toEqual([]);
  });

  it("the provider clears it for its own payments only: a companion's report stays", () => {
    const counter = aServedCounter().picks("smart_pos").fetches().reports("reported_success").cancels().clears();
    expect([counter.happened, reasonsOf(counter)]).toEqual([[], [[1_001, "success_reported"]]]);
  });

  it("accepted from a provider only, and only about a QR", () => {
    expect(shown().differs("amount_mismatch", { by: COMPANION }).reply).toMatchObject({ code: "intent_unknown" });
    expect(aServedCounter().picks("smart_pos").differs().reply).toMatchObject({ code: "intent_unknown" });
  });
});

describe("a report that money may have moved", () => {
  it.each([
    ["reported_unknown", "outcome_unknown"],
    ["reported_success", "success_reported"],
  ] as const)("%s is not displaced by any number of others", (outcome, reason) => {
    const counter = aServedCounter().picks("smart_pos").fetches().reports(outcome);
    for (let made = 0; made <= STATE_LIMITS.activeReports; made += 1) counter.reports("reported_declined");
    expect(counter.intent?.reports.map((report) => report.outcome)).not.toContain(outcome);
    expect(reasonsOf(counter.cancels())).toEqual([[1_001, reason]]);
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
    ["of a blocked device", () => frozen()],
    ["after the end", () => aServedCounter().picks("smart_pos").cancels()],
  ])("kept once for its content, whatever its key, and within a bound: %s", (_what, begin) => {
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

  it("a collection that has ended: its order is unclear at once, and a decline makes no order unclear", () => {
    expect(reasonsOf(frozen().cancels().reports("reported_unknown"))).toEqual([[1_001, "late_evidence"]]);
    const declined = frozen().reports("reported_declined");
    expect([declined.happened, declined.intent?.moneyMayHaveMoved]).toEqual([["late_evidence_kept"], ""]);
  });

  it("repeated: kept once, and accepted under the same key when the block has ended", () => {
    const counter = frozen().reports("reported_success", { key: "k" });
    expect(counter.reports("reported_success", { key: "k" }).happened).toEqual([]);
    expect(counter.reply).toEqual({ ok: false, code: "device_frozen" });
    expect(counter.freezes({}).reports("reported_success", { key: "k" }).happened).toEqual(["outcome_reported"]);
  });

  it("a block that only the gateway knows, or only the station: refused", () => {
    const known = aServedCounter().picks("smart_pos").reports("reported_unknown", { blocked: "platform_frozen" });
    expect([known.reply, known.happened]).toEqual([{ ok: false, code: "platform_frozen" }, ["late_evidence_kept"]]);
    const suspended = aServedCounter()
      .picks("smart_pos")
      .describesDevice({ ...COMPANION_DEVICE, status: "suspended", revision: 2 });
    expect(suspended.reports("reported_success").reply).toEqual({ ok: false, code: "device_suspended" });
  });

  it("about another device's intent: refused with the reason and not kept", () => {
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
    ["dynamic_qr", "presented with money that differs", "money_differs", () => shown().differs()],
    ["cash", "created", "", () => aServedCounter().picks("cash")],
  ] as const)(
    "a %s collection that is %s: ends, and keeps whether the order may be paid twice: %s",
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

  it("a reported success and a settlement in progress: the collection goes on", () => {
    expect(paid(aServedCounter().picks("smart_pos").reports("reported_success")).intent?.status).toBe("processing");
    expect(paid(shown().confirms()).settles().intent?.status).toBe("succeeded");
    expect(paid(shown().confirms().refusesToSettle()).intent?.status).toBe("processing");
  });

  it("collections of another order: do not end", () => {
    expect(shown().order({ orderId: 502, status: "paid" }).intent?.status).toBe("presented");
    expect(shown().order({ orderId: 502, status: "voided" }).intent?.status).toBe("presented");
  });

  it("an earlier cancelled collection that the seam had settled: the next collection ends too", () => {
    const counter = shown().cancels();
    const { intentId: earlier } = counter;
    counter.picks("smart_pos", { confirms: true }).settles(9_001, earlier);
    expect(counter.happened).toEqual(["settlement_conflict", "intent_overtaken"]);
    expect(counter.intent).toMatchObject({ status: "cancelled", endReason: "order_already_paid" });
  });

  it("the question whether the order is being collected: answered without a commit", () => {
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
    "ends a %s collection that is %s, and keeps whether money may have moved: %s",
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
      // The order is not collected again, so no cashier has to confirm anything.
      expect(counter.station.unclearCollections).toEqual([]);
      expect(counter.display).toMatchObject({ state: "idle", qr_payload: "" });
    },
  );

  it("a void during the seam's answer: ends a collection that the seam refuses", () => {
    const counter = voided(aServedCounter().picks("cash").attests());
    expect(counter.intent?.status).toBe("settling");
    counter.refusesToSettle("order_voided");
    expect(counter.happened).toEqual(["settlement_refused", "intent_overtaken"]);
    expect(counter.reply).toEqual({ ok: false, code: "order_voided", status: "cancelled" });
  });

  it("offers in progress: left to the cashier", () => {
    expect(voided(aServedCounter().picks("smart_pos").reports("reported_success")).intent?.status).toBe("processing");
    expect(voided(shown().confirms()).refusesToSettle("order_voided").intent?.status).toBe("processing");
  });
});

describe("an order whose amount changes", () => {
  const changed = (counter: Scenario): Scenario => counter.order({ amountMinor: "1300", revision: 2 });

  it("a QR, whose amount is fixed in it: ends, and a shown one needs a confirmation before another one is made", () => {
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

  it("a QR that is not there yet: ends, and nothing can have been paid", () => {
    const counter = changed(aQrCounter().picks("dynamic_qr"));
    expect(counter.intent).toMatchObject({ status: "cancelled", endReason: "order_changed", moneyMayHaveMoved: "" });
    expect([counter.station.unreportedEnds, reasonsOf(counter)]).toEqual([[1_001], []]);
  });

  it("another currency: ends it too; other lines of the same total: do not", () => {
    expect(shown().order({ currency: "USD", revision: 2 }).intent?.status).toBe("cancelled");
    expect(shown().order({ revision: 2 }).intent?.status).toBe("presented");
  });

  it("a collection from a newer description: does not end", () => {
    const order = { ...ORDER, amountMinor: "1400", revision: 3 };
    const counter = aQrCounter().picks("dynamic_qr", { order }).givesQr();
    expect(changed(counter).intent?.status).toBe("presented");
    expect(counter.order({ amountMinor: "1400", revision: 3 }).intent?.status).toBe("presented");
    expect(counter.order({ amountMinor: "1500", revision: 4 }).intent?.endReason).toBe("order_changed");
  });

  it("other routes and confirmed collections: do not change", () => {
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

  it("bounded: the oldest ends, which the providers service finds by their deadline, are dropped", () => {
    const counter = aQrCounter();
    for (let made = 0; made < STATE_LIMITS.unreportedEnds + 2; made += 1) counter.picks("dynamic_qr").cancels();
    expect([counter.station.unreportedEnds.length, counter.station.unreportedEnds[0]]).toEqual([
      STATE_LIMITS.unreportedEnds,
      1_003,
    ]);
  });
});
