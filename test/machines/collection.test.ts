/** One collection as sentences of `Scenario`: how the station applies the rules of the contract. */
import { describe, expect, it } from "vitest";
import { REPORTED_OUTCOMES } from "../../machines/payment-intent.ts";
import { aCounter, aServedCounter, COMPANION_DEVICE, DISPLAY, ROBIN, SECOND_COMPANION } from "./scenario.ts";

describe("a smart POS collection", () => {
  it("the usual steps: open order, evidence, attestation, paid", () => {
    const counter = aServedCounter();
    expect(counter.display).toMatchObject({ state: "total", amount: "12.50", intent_status: "" });
    counter.picks("smart_pos");
    expect(counter.intent).toMatchObject({ status: "created", deviceId: 701, handoffTarget: "posapp://collect/one" });
    counter.waits(1_000).fetches();
    expect(counter.happened).toEqual(["intent_presented"]);
    counter.waits(1_000).reports("reported_success", { reference: "RRN-1", code: "00" });
    expect(counter.intent?.status).toBe("processing");
    expect(counter.display).toMatchObject({ state: "total", intent_status: "processing" });
    counter.waits(1_000).attests();
    expect(counter.intent).toMatchObject({ status: "settling", attestation: { reference: "RRN-1" } });
    expect(counter.display).toMatchObject({ state: "total", intent_status: "processing" });
    counter.settles(77);
    expect(counter.intent).toMatchObject({ status: "succeeded", attestation: { transactionId: 77 } });
    expect(counter.display).toMatchObject({ state: "paid", amount: "12.50", intent_status: "succeeded" });
    counter.waits(8_000);
    expect(counter.display).toMatchObject({ state: "idle", amount: "0.00", order_display_number: 0 });
  });

  it.each(REPORTED_OUTCOMES)("the companion reports %s: the intent is processing and can be attested", (outcome) => {
    const counter = aServedCounter().picks("smart_pos").fetches().reports(outcome);
    expect(counter.intent?.status).toBe("processing");
    expect(counter.attests().reply).toMatchObject({ ok: true, status: "settling" });
  });

  it("a report before the assignment was fetched: accepted, because evidence of the assigned device is never refused", () => {
    expect(aServedCounter().picks("smart_pos").reports("reported_unknown").intent?.status).toBe("processing");
  });

  it("a second report with another key: stored too, and the attestation inherits the newest reference", () => {
    const counter = aServedCounter().picks("smart_pos").reports("reported_declined", { reference: "A" });
    counter.reports("reported_success", { reference: "B" }).attests();
    expect(counter.intent).toMatchObject({ reportCount: 2, attestation: { reference: "B" } });
  });

  it("a later report without a reference: the reference stays", () => {
    const counter = aServedCounter().picks("smart_pos").reports("reported_success", { reference: "A" });
    expect(counter.reports("reported_unknown").attests().intent?.attestation?.reference).toBe("A");
  });

  it("very many reports without a reference: the reference stays", () => {
    const counter = aServedCounter().picks("smart_pos").reports("reported_success", { reference: "SLIP" });
    for (let n = 0; n < 12; n += 1) counter.reports("reported_unknown");
    expect(counter.intent?.reports.length).toBe(8);
    expect(counter.attests().intent?.attestation?.reference).toBe("SLIP");
  });

  it("a typed reference: counts only when no device gave one", () => {
    const reported = aServedCounter().picks("smart_pos").reports("reported_success", { reference: "A" });
    expect(reported.attests({ reference: "typed" }).intent?.attestation?.reference).toBe("A");
    const unknown = aServedCounter().picks("smart_pos").reports("reported_unknown");
    expect(unknown.attests({ reference: " typed " }).intent?.attestation?.reference).toBe("typed");
  });

  it("no evidence: the attestation is refused", () => {
    expect(aServedCounter().picks("smart_pos").attests().reply).toMatchObject({ code: "evidence_required" });
    expect(aServedCounter().picks("smart_pos").fetches().attests().reply).toEqual({
      ok: false,
      code: "evidence_required",
      status: "presented",
    });
  });

  it("a preferred companion: it gets the collection; when it cannot take it, no other companion gets it", () => {
    const counter = aServedCounter().describesDevice({ ...COMPANION_DEVICE, deviceId: SECOND_COMPANION.id });
    expect(counter.picks("smart_pos", { deviceId: SECOND_COMPANION.id }).reply).toMatchObject({
      code: "route_not_offered",
      reason: "device_offline",
    });
    counter.describesDevice({ ...COMPANION_DEVICE, deviceId: SECOND_COMPANION.id, status: "suspended", revision: 2 });
    expect(counter.picks("smart_pos", { deviceId: SECOND_COMPANION.id }).reply).toMatchObject({
      reason: "device_suspended",
    });
    expect(counter.picks("smart_pos", { deviceId: DISPLAY.id }).reply).toMatchObject({ reason: "no_companion" });
    counter.describesDevice({ ...COMPANION_DEVICE, deviceId: SECOND_COMPANION.id, revision: 3 });
    counter.receivesHeartbeat(SECOND_COMPANION).picks("smart_pos", { deviceId: SECOND_COMPANION.id });
    expect(counter.intent?.deviceId).toBe(SECOND_COMPANION.id);
  });

  it("a report or fetch by another device: the answer is that for an unknown intent", () => {
    const counter = aServedCounter().picks("smart_pos");
    expect(counter.reports("reported_success", { by: DISPLAY }).reply).toEqual({
      ok: false,
      code: "handoff_not_assigned",
    });
    expect(counter.reports("reported_success", { intentId: 4_711 }).reply).toEqual({
      ok: false,
      code: "handoff_not_assigned",
    });
    expect(counter.fetches({ by: DISPLAY }).reply).toEqual({ ok: false, code: "handoff_not_assigned" });
  });
});

describe("cash and the attested terminal", () => {
  it("cash: attested at once, without a reference", () => {
    const counter = aServedCounter().picks("cash").attests().settles();
    expect(counter.intent).toMatchObject({ status: "succeeded", deviceId: null, attestation: { reference: "" } });
  });

  it("a terminal's reference: required and kept", () => {
    const counter = aServedCounter().picks("attested_terminal");
    expect(counter.attests().reply).toEqual({ ok: false, code: "reference_required", status: "created" });
    expect(counter.attests({ reference: "  " }).reply).toEqual({
      ok: false,
      code: "reference_required",
      status: "created",
    });
    expect(counter.attests({ reference: "SLIP-9" }).settles().intent?.attestation?.reference).toBe("SLIP-9");
  });

  it("I15 every freeze: a cash collection can begin, and no other one", () => {
    for (const freeze of [{ platform: true }, { organizations: new Set([11]) }, { stations: new Set([12_345]) }]) {
      const counter = aServedCounter().freezes(freeze);
      for (const route of ["smart_pos", "attested_terminal"] as const)
        expect(counter.picks(route).reply).toMatchObject({ code: "route_not_offered" });
      expect(counter.picks("cash").attests().settles().intent?.status).toBe("succeeded");
    }
  });

  it("a collection from before a freeze: can still be attested, because the guest may have paid", () => {
    const counter = aServedCounter().picks("smart_pos").reports("reported_success").freezes({ platform: true });
    expect(counter.attests().settles().intent?.status).toBe("succeeded");
  });

  it("a suspended or closed station: collects nothing, not even cash", () => {
    const suspended = aServedCounter().describesStation({ status: "suspended", revision: 2 });
    expect(suspended.picks("cash").reply).toMatchObject({ reason: "station_suspended" });
    const closed = aServedCounter().describesStation({ status: "closed", revision: 2 });
    expect(closed.picks("cash").reply).toMatchObject({ reason: "station_closed" });
    expect(closed.leased(ROBIN).reply).toMatchObject({ code: "station_closed" });
  });

  it("a collection at a station that was closed, and whose lease has ended: the next cashier can attest it", () => {
    const counter = aServedCounter().picks("smart_pos").reports("reported_success");
    counter.describesStation({ status: "closed", revision: 2 }).releases().leased(ROBIN);
    expect(counter.attests({ by: ROBIN }).intent?.status).toBe("settling");
    counter.settles();
    expect(counter.releases(ROBIN).leased(ROBIN).reply).toMatchObject({ code: "station_closed" });
  });
});

describe("a collection that is refused", () => {
  it.each([
    ["an amount of zero", { amountMinor: "0" }, "amount_not_collectable"],
    ["an amount that the contract cannot write", { amountMinor: "1000000000000" }, "amount_not_collectable"],
    ["an unknown currency", { currency: "XXX" }, "amount_not_collectable"],
    ["a paid order", { status: "paid" }, "order_already_paid"],
    ["a voided order", { status: "voided" }, "order_voided"],
  ] as const)("%s", (_what, change, code) => {
    const order = { orderId: 502, orderDisplayNumber: 8, amountMinor: "100", currency: "EUR", revision: 1 } as const;
    expect(aServedCounter().picks("cash", { order: { status: "open", ...order, ...change } }).reply).toMatchObject({
      code,
    });
  });

  it("a second collection while the first is active: refused", () => {
    expect(aServedCounter().picks("cash").picks("cash").reply).toEqual({
      ok: false,
      code: "collection_active",
      status: "created",
    });
  });
});

describe("the lease", () => {
  it("a cashier without the lease: every step of a collection is refused", () => {
    expect(aCounter().order().picks("cash").reply).toEqual({ ok: false, code: "lease_required" });
    expect(aServedCounter().picks("cash", { by: ROBIN }).reply).toEqual({
      ok: false,
      code: "station_leased",
      holder: "Casey",
    });
  });

  it("a take-over: a colleague finishes the collection", () => {
    const counter = aServedCounter().picks("smart_pos").reports("reported_success").releases().leased(ROBIN);
    expect(counter.attests({ by: ROBIN }).settles().intent).toMatchObject({
      status: "succeeded",
      createdBy: 31,
      attestation: { cashierId: 32, cashierName: "Robin" },
    });
  });

  it("the lease expires: every cashier can acquire it", () => {
    const counter = aCounter()
      .leased()
      .waits(15 * 60_000);
    expect(counter.leased(ROBIN).happened).toEqual(["lease_lapsed", "lease_acquired"]);
  });

  it("devices and owners: need no lease", () => {
    expect(aCounter().leased({ kind: "owner", id: 31 }).reply).toMatchObject({ code: "lease_required" });
    expect(aServedCounter().picks("cash", { by: { kind: "owner", id: 31 } }).reply).toMatchObject({
      code: "station_leased",
    });
  });

  it("a release: only the holder can release the lease; the release of a free lease has no effect", () => {
    expect(aCounter().releases().reply).toEqual({ ok: true, type: "lease", lease: null, lostLease: null });
    expect(aCounter().leased().releases(ROBIN).reply).toMatchObject({ code: "station_leased" });
  });
});
