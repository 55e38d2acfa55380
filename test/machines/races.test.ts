/** Messages that arrive at the same time, out of order or twice. Each test is one race, and its title is the result. */

import { describe, expect, it } from "vitest";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { nextDeadlineMs } from "../../machines/station/deadlines.ts";
import { renderReply } from "../../machines/station/render-reply.ts";
import {
  aCounter,
  aServedCounter,
  COMPANION,
  COMPANION_DEVICE,
  DISPLAY,
  ORDER,
  type Scenario,
  START_MS as START,
} from "./scenario.ts";

const reported = (): Scenario => aServedCounter().picks("smart_pos").fetches().reports("reported_success");

describe("an attestation against a cancellation and the deadline", () => {
  it("I7 an attested intent is not cancelled during the seam's answer", () => {
    const counter = reported().attests();
    expect(counter.cancels().reply).toEqual({ ok: false, code: "settlement_in_progress", status: "processing" });
    expect(counter.settles().intent?.status).toBe("succeeded");
  });

  it("I7 an attested intent does not expire, however long the seam takes", () => {
    const counter = reported().attests().waits(3_600_000).ticks();
    expect(counter.intent?.status).toBe("settling");
    expect(counter.settles().intent?.status).toBe("succeeded");
  });

  it("I7 a cancelled or expired intent never succeeds; the seam's later answer is kept for a person", () => {
    for (const ended of [reported().cancels(), reported().waits(180_000).ticks()]) {
      const status = ended.intent?.status;
      expect(ended.attests().reply).toMatchObject({ ok: false });
      expect(ended.settles().happened).toEqual(["settlement_conflict"]);
      expect(ended.intent?.status).toBe(status);
    }
  });

  it("an attestation exactly at the deadline is refused as expired", () => {
    const counter = reported();
    counter.atMs = counter.intent?.expiresAtMs ?? 0;
    expect(counter.attests().reply).toEqual({ ok: false, code: "intent_not_actionable", status: "expired" });
    expect(counter.happened).toEqual(["intent_expired"]);
  });

  it("the seam refuses after the deadline: the intent expires in the same commit, and the reply shows it", () => {
    const counter = reported().attests({ key: "attest" }).waits(300_000).refusesToSettle("order_voided");
    expect(counter.happened).toEqual(["settlement_refused", "intent_expired"]);
    expect(counter.attests({ key: "attest" }).reply).toEqual({ ok: false, code: "order_voided", status: "expired" });
  });

  it("the seam refuses: the intent is processing again, and the cashier can cancel it", () => {
    const counter = reported().attests().refusesToSettle("order_changed");
    expect(counter.intent).toMatchObject({ status: "processing", attestation: null });
    expect(counter.cancels().intent?.status).toBe("cancelled");
  });

  it("a success that another host received after this host's refusal still settles the intent", () => {
    const counter = reported().attests().refusesToSettle("order_changed").settles(77);
    expect(counter.happened).toEqual(["intent_succeeded"]);
    expect(counter.intent?.status).toBe("succeeded");
  });

  it("a refusal of an earlier attestation does not undo a later one", () => {
    const counter = reported().attests({ key: "first" });
    counter.refusesToSettle("order_changed", { attestationId: "first" }).attests({ key: "second" });
    expect(counter.refusesToSettle("order_changed", { attestationId: "first" }).happened).toEqual([]);
    expect(counter.intent?.status).toBe("settling");
    counter.refusesToSettle("order_voided", { attestationId: "second" });
    expect(counter.intent?.status).toBe("processing");
  });

  it("an answer of the seam that arrives twice or names an unknown intent changes nothing", () => {
    const counter = reported().attests().settles();
    expect(counter.settles().happened).toEqual([]);
    expect(counter.settles(1, 4_711).happened).toEqual([]);
    expect(counter.refusesToSettle().happened).toEqual([]);
    expect(counter.refusesToSettle("order_changed", { intentId: 4_711 }).happened).toEqual([]);
  });
});

describe("the same command twice", () => {
  it("I6 a report with the same key gets the same answer and is not recorded again", () => {
    const counter = aServedCounter().picks("smart_pos").reports("reported_success", { key: "k", reference: "A" });
    const first = counter.reply;
    counter.waits(2_000).reports("reported_declined", { key: "k", reference: "B" });
    expect([counter.reply, counter.repeated]).toEqual([first, true]);
    expect(counter.intent?.reportCount).toBe(1);
  });

  it("I6 a report repeated after the intent has ended is answered with the assignment as it was", () => {
    const counter = reported().reports("reported_success", { key: "k" }).attests().settles();
    counter.reports("reported_success", { key: "k" });
    expect(counter.repeated).toBe(true);
    const rendered = renderReply(counter.station, counter.reply ?? { ok: true, type: "accepted" });
    expect(rendered?.intent).toMatchObject({ status: "processing", attestation: null, endedAtMs: null });
  });

  it("I6 a creation repeated after later steps of the intent is answered with the created intent", () => {
    const counter = aServedCounter().picks("smart_pos", { key: "k" }).fetches().reports("reported_success");
    counter.picks("smart_pos", { key: "k" });
    const rendered = renderReply(counter.station, counter.reply ?? { ok: true, type: "accepted" });
    expect(rendered?.intent).toMatchObject({ status: "created", presentedAtMs: null, reports: [], reportCount: 0 });
  });

  it("I6 an attestation repeated before the seam answers is settling like the first; another one is refused", () => {
    const counter = reported().attests({ key: "k" });
    expect(counter.attests({ key: "k" }).reply).toMatchObject({ ok: true, status: "settling" });
    expect(counter.happened).toEqual([]);
    expect(counter.attests({ key: "other" }).reply).toMatchObject({ code: "settlement_in_progress" });
    expect(counter.settles().attests({ key: "k" }).reply).toMatchObject({ ok: true, status: "succeeded" });
    expect(counter.repeated).toBe(true);
  });

  it("the answer about an intent that has left the state is not rendered", () => {
    const counter = aServedCounter().picks("cash", { key: "k" });
    const { reply } = counter;
    for (let made = 0; made <= STATE_LIMITS.endedIntents; made += 1) counter.cancels().picks("cash");
    expect(renderReply(counter.station, reply ?? { ok: true, type: "accepted" })).toBeUndefined();
  });

  it("renewals and fetches displace no stored reply", () => {
    const counter = aServedCounter().picks("smart_pos", { key: "k" });
    for (let times = 0; times < 50; times += 1) counter.waits(1_000).renews().fetches();
    expect(counter.picks("smart_pos", { key: "k" }).repeated).toBe(true);
  });
});

describe("late evidence", () => {
  it("a report after the end is refused with the status and stored once, and the intent's status stays", () => {
    for (const ended of [reported().cancels(), reported().attests().settles(), reported().waits(180_000).ticks()]) {
      const before = ended.intent;
      ended.reports("reported_success", { key: "late", reference: "RRN-9" });
      expect(ended.reply).toEqual({ ok: false, code: "intent_not_actionable", status: before?.status });
      expect(ended.happened).toEqual(["late_evidence_kept"]);
      const reasonSinceEnd = before?.status === "succeeded" ? "" : "late_success";
      expect(ended.intent).toEqual({ ...before, reasonSinceEnd });
      expect(ended.reports("reported_success", { key: "late" }).happened).toEqual([]);
    }
  });

  it("a late report about an intent that the host recalled is stored", () => {
    const counter = reported().cancels();
    const recalled = counter.intent;
    const intentId = counter.intentId;
    for (let made = 0; made < STATE_LIMITS.endedIntents; made += 1) counter.picks("cash", { confirms: true }).cancels();
    expect(counter.reports("reported_success", { intentId }).reply).toMatchObject({ code: "handoff_not_assigned" });
    counter.recalled = recalled;
    expect(counter.reports("reported_success", { intentId }).reply).toMatchObject({
      code: "intent_not_actionable",
      status: "cancelled",
    });
    expect(counter.happened).toEqual(["late_evidence_kept"]);
    expect(counter.reports("reported_success", { intentId, by: DISPLAY }).reply).toMatchObject({
      code: "handoff_not_assigned",
    });
    expect(counter.attests({ intentId }).reply).toMatchObject({ code: "intent_not_actionable", status: "cancelled" });
  });

  it("a recalled intent that has not ended is ignored", () => {
    const counter = reported();
    const active = counter.intent;
    const intentId = counter.intentId;
    counter.cancels();
    for (let made = 0; made < STATE_LIMITS.endedIntents; made += 1) counter.picks("cash", { confirms: true }).cancels();
    counter.recalled = active;
    expect(counter.reports("reported_success", { intentId }).reply).toMatchObject({ code: "handoff_not_assigned" });
  });
});

describe("a fetch that arrives late", () => {
  it("does not present the intent that replaced the fetched one", () => {
    const counter = aServedCounter().picks("smart_pos");
    const fetched = counter.intentId;
    counter.cancels().picks("smart_pos").fetches({ intentId: fetched });
    expect(counter.reply).toMatchObject({ ok: true, intentId: fetched, status: "cancelled" });
    expect(counter.intent?.status).toBe("created");
  });

  it("a second fetch shows the current state and commits nothing", () => {
    const counter = aServedCounter().picks("smart_pos").fetches();
    expect(counter.fetches().reply).toMatchObject({ status: "presented" });
    expect(counter.happened).toEqual([]);
  });
});

describe("descriptions that arrive out of order", () => {
  it("an older description of a station or a device is ignored", () => {
    const counter = aCounter()
      .describesStation({ name: "New", revision: 3 })
      .describesStation({ name: "Old", revision: 2 });
    expect(counter.station.name).toBe("New");
    counter.describesDevice({ ...COMPANION_DEVICE, name: "New", revision: 3 });
    counter.describesDevice({ ...COMPANION_DEVICE, name: "Old", revision: 2 });
    expect(counter.device()?.name).toBe("New");
  });

  it("the same description twice is committed once", () => {
    const counter = aServedCounter();
    expect(counter.describesStation().happened).toEqual([]);
    expect(counter.describesDevice(COMPANION_DEVICE).happened).toEqual([]);
    expect(counter.order().happened).toEqual([]);
  });

  it("a station accepts no more devices than it may, and drops the oldest revoked ones", () => {
    const counter = aCounter();
    const described = (deviceId: number, status: "active" | "revoked", revision: number): Scenario =>
      counter.describesDevice({ ...COMPANION_DEVICE, deviceId, status, revision });
    for (let deviceId = 800; counter.station.devices.length < STATE_LIMITS.devices; deviceId += 1) {
      described(deviceId, "active", 1);
    }
    expect(described(900, "active", 1).reply).toEqual({ ok: false, code: "device_limit_reached" });
    expect(described(800, "active", 2).happened).toEqual(["device_changed"]);
    described(800, "revoked", 3);
    expect(described(900, "active", 1).happened).toEqual(["device_changed"]);
    for (let deviceId = 900; deviceId < 900 + STATE_LIMITS.revokedDevices + 2; deviceId += 1) {
      described(deviceId, "active", 2);
      described(deviceId, "revoked", 3);
    }
    expect(counter.station.revokedDevices).toHaveLength(STATE_LIMITS.revokedDevices);
    expect(counter.station.revokedDevices).not.toContain(800);
  });

  it("a revoked device is not brought back by a description from before", () => {
    const counter = aCounter().describesDevice({ ...COMPANION_DEVICE, status: "revoked", revision: 5 });
    expect(counter.device()).toBeUndefined();
    expect(counter.describesDevice({ ...COMPANION_DEVICE, revision: 4 }).happened).toEqual([]);
    expect(counter.device()).toBeUndefined();
  });

  it("an older revision of an order does not come back after a newer one or another order", () => {
    const counter = aServedCounter().order({ revision: 2, amountMinor: "1500" }).order();
    expect(counter.display.amount).toBe("15.00");
    counter.order({ orderId: 502, orderDisplayNumber: 8 }).order();
    expect(counter.display.order_display_number).toBe(8);
  });

  it("an older revision of the shown order does not come back after many other orders", () => {
    const counter = aServedCounter().order({ revision: 2, amountMinor: "1500" });
    for (let nth = 0; nth < STATE_LIMITS.knownOrders; nth += 1)
      counter.order({ orderId: 600 + nth, status: "voided", revision: 2 });
    expect(counter.order().display.amount).toBe("15.00");
  });

  it("a paid or voided order does not open again by another description", () => {
    expect(aServedCounter().picks("cash").attests().settles().order({ revision: 2 }).station.order).toBeNull();
    expect(aServedCounter().order({ status: "voided", revision: 2 }).order({ revision: 3 }).station.order).toBeNull();
    expect(aCounter().order({ status: "voided", revision: 2 }).order().station.order).toBeNull();
  });

  it("voiding an order that is not shown does not change the shown one", () => {
    const counter = aServedCounter().order({ orderId: 502, orderDisplayNumber: 8 });
    expect(counter.order({ status: "voided", revision: 2 }).display.order_display_number).toBe(8);
  });

  it("order truth that was read before another host settled starts no second collection", () => {
    const counter = aServedCounter().picks("smart_pos").reports("reported_success").attests().settles();
    expect(counter.picks("smart_pos", { order: ORDER }).reply).toEqual({ ok: false, code: "order_already_paid" });
    const changed = aServedCounter().order({ revision: 2, amountMinor: "1500" });
    expect(changed.picks("cash", { order: ORDER }).reply).toEqual({ ok: false, code: "order_changed" });
  });

  it("only the fields that a station knows enter its state", () => {
    const orderWithMore = { ...ORDER, lines: ["x".repeat(10_000)], knownOrders: [] };
    const counter = aCounter();
    counter.send({ type: "order_put", order: orderWithMore }, { kind: "settlement", id: 0 });
    const station = {
      organizationId: 11,
      filialId: 21,
      name: "N",
      currency: "EUR",
      status: "active",
      revision: 9,
    } as const;
    const stationWithMore = { ...station, devices: [], lease: 1 };
    counter.send({ type: "station_put", stationId: 1, station: stationWithMore }, { kind: "registry", id: 0 });
    const deviceWithMore = { ...COMPANION_DEVICE, revision: 9, liveness: "online", secret: "s" };
    counter.describesDevice(deviceWithMore);
    expect(JSON.stringify(counter.station)).not.toMatch(/xxxx|secret/);
    expect(counter.station).toMatchObject({ stationId: 12_345, lease: null });
    expect(counter.station.devices).toHaveLength(2);
    expect(counter.device()?.liveness.state).toBe("online");
  });
});

describe("heartbeats and silences out of order", () => {
  it("an older silence that a suspended host reports late does not undo a newer heartbeat", () => {
    const counter = aCounter().noticesSilence().waits(60_000).receivesHeartbeat();
    const lastHeartbeatAtMs = counter.atMs;
    expect(counter.waits(1_000).noticesSilence(COMPANION, lastHeartbeatAtMs - 60_000).happened).toEqual([]);
    expect(counter.device()?.liveness.state).toBe("online");
    expect(counter.waits(30_000).noticesSilence(COMPANION, lastHeartbeatAtMs).happened).toEqual(["device_offline"]);
  });

  it("a heartbeat from before a silence does not set the device online", () => {
    const counter = aCounter()
      .waits(30_000)
      .noticesSilence(COMPANION, START + 2_000);
    expect(counter.receivesHeartbeat(COMPANION, START + 2_000).happened).toEqual([]);
    expect(counter.receivesHeartbeat(COMPANION, START + 31_000).happened).toEqual(["device_online"]);
  });

  it("a heartbeat with a time in the future counts as received now", () => {
    const counter = aCounter()
      .noticesSilence(COMPANION, START + 500)
      .receivesHeartbeat(COMPANION, START + 3_600_000);
    expect(counter.device()?.liveness.lastSeenAtMs).toBe(counter.atMs);
  });

  it("a heartbeat after a silence in the same moment, because the time of the station stands still, sets the device online", () => {
    const counter = aCounter();
    counter.noticesSilence(COMPANION, counter.atMs);
    expect(counter.receivesHeartbeat(COMPANION, counter.atMs).happened).toEqual([]);
    expect(counter.receivesHeartbeat(COMPANION, counter.atMs + 1).happened).toEqual(["device_online"]);
  });

  it("a device that must enroll again is offline, and its heartbeats do not count until it is active", () => {
    const counter = aCounter().describesDevice({ ...COMPANION_DEVICE, status: "pending", revision: 2 });
    const resetAtMs = counter.atMs;
    expect(counter.device()?.liveness.state).toBe("offline");
    expect(counter.receivesHeartbeat().happened).toEqual([]);
    counter.describesDevice({ ...COMPANION_DEVICE, revision: 3 });
    // A fixed defect: after a hand-over, the old hardware's stored heartbeat set the new hardware online.
    expect(counter.receivesHeartbeat(COMPANION, resetAtMs).happened).toEqual([]);
    expect(counter.device()?.liveness).toEqual({ state: "offline", lastSeenAtMs: null, sinceMs: resetAtMs });
    expect(counter.waits(1_000).receivesHeartbeat().happened).toEqual(["device_online"]);
  });

  it("a suspended device keeps its liveness, and its route is offered again when the suspension ends", () => {
    const counter = aServedCounter().describesDevice({ ...COMPANION_DEVICE, status: "suspended", revision: 2 });
    expect(counter.picks("smart_pos").reply).toMatchObject({ code: "route_not_offered", reason: "device_suspended" });
    counter.describesDevice({ ...COMPANION_DEVICE, revision: 3 });
    expect(counter.picks("smart_pos").intent?.status).toBe("created");
  });
});

describe("a device that lost its standing", () => {
  it("I8 is refused by the station itself, whatever the gateway forwards", () => {
    const counter = aServedCounter().picks("smart_pos");
    counter.describesDevice({ ...COMPANION_DEVICE, status: "suspended", revision: 2 });
    expect(counter.fetches().reply).toEqual({ ok: false, code: "device_suspended" });
    expect(counter.reports("reported_success").reply).toEqual({ ok: false, code: "device_suspended" });
    // While a credential ends, a report gets no final answer: the device keeps the report for its next credential.
    counter.describesDevice({ ...COMPANION_DEVICE, status: "pending", revision: 3 });
    expect(counter.reports("reported_success").reply).toEqual({ ok: false, code: "device_unknown" });
    counter.describesDevice({ ...COMPANION_DEVICE, status: "revoked", revision: 4 });
    expect(counter.reports("reported_success").reply).toEqual({ ok: false, code: "device_unknown" });
    expect(counter.intent?.status).toBe("created");
  });

  it("I8 is refused while a kill switch is on, and accepted again when it is off", () => {
    const counter = aServedCounter()
      .picks("smart_pos")
      .freezes({ devices: new Set([COMPANION.id]) });
    expect(counter.reports("reported_success", { key: "k" }).reply).toEqual({ ok: false, code: "device_frozen" });
    expect(counter.freezes({}).reports("reported_success", { key: "k" }).intent?.status).toBe("processing");
  });
});

describe("deadlines", () => {
  it("the next deadline is the earlier one of intent and lease; the deadline of a settling intent does not count", () => {
    const counter = reported();
    const leaseMs = counter.station.lease?.expiresAtMs;
    expect(nextDeadlineMs(counter.station)).toBe(counter.intent?.expiresAtMs);
    expect(nextDeadlineMs(counter.attests().station)).toBe(leaseMs);
    expect(nextDeadlineMs(counter.settles().releases().station)).toBeNull();
  });

  it("any command applies an overdue deadline before the command itself", () => {
    const counter = aServedCounter().picks("cash").waits(180_000).receivesHeartbeat();
    expect(counter.happened).toEqual(["intent_expired"]);
    expect(counter.waits(15 * 60_000).picks("cash").happened).toEqual(["lease_lapsed"]);
    expect(counter.reply).toMatchObject({ code: "lease_required" });
  });
});
