/** The invariants of the device kit's SPEC, in random sequences of answers, failures, timers and power cuts. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Report } from "../../../clients/device-kit/client.ts";
import {
  type CompanionEffect,
  type CompanionEvent,
  companionStep,
  firstCompanionState,
} from "../../../clients/device-kit/companion-machine.ts";
import { type DisplayEffect, displayStep, firstDisplayState } from "../../../clients/device-kit/display-machine.ts";
import type { DeviceRecord } from "../../../clients/device-kit/record.ts";
import type { Failure } from "../../../clients/device-kit/transport.ts";

const RUNS = { numRuns: 400 };
const MAX_STEPS = 120;
const TIME = "2026-11-20T12:00:00.000Z";
const device = {
  device_id: 7,
  name: "Till 3",
  kind: "smart_pos_companion",
  capabilities: [],
  status: "active",
  station_name: "Counter 1",
  station_status: "active",
  handoff_target: "",
  blocked_reason: "",
  server_time: TIME,
};
const failureOf = (status: number, code: string): Failure => ({
  status,
  code,
  detail: code,
  request_id: "",
  intent_status: "",
  retry_after_ms: 0,
});
const FAILURES = [
  failureOf(0, "no_answer"),
  failureOf(503, "busy"),
  failureOf(403, "device_suspended"),
  failureOf(429, "throttled"),
];
const ENDS = [failureOf(409, "intent_not_actionable"), failureOf(404, "handoff_not_assigned")];
const REFUSED = failureOf(401, "credential_invalid");

/** A service with one companion, its payment application, and the facts that the invariants compare. */
function createWorld(draw: (below: number) => number, canAsk: boolean) {
  let keys = 0;
  let atMs = 0;
  let disk: DeviceRecord | null = null;
  let state = firstCompanionState(canAsk);
  let open: CompanionEffect[] = [];
  const timers = new Map<string, number>();
  let deviceId = 7;
  let intentId = 1;
  let isReported = false;
  let isBegun = false;
  const launches: number[] = [];
  const answered = new Set<string>();
  const sent = new Map<string, Report>();
  /** The results of the payment application, by the key of the attempt. */
  const returned = new Map<string, string>();
  /** False after the disk has lost data: then the device repeats a report only as far as it had stored it. */
  let isDiskWhole = true;
  /** Credentials that the service has refused after it had accepted them, as the device knows it. */
  const over = new Set<string>();

  const take = (event: CompanionEvent): void => {
    keys += 1;
    const isRefused = "failure" in event && event.failure === REFUSED && event.type !== "enroll_failed";
    if (isRefused && state.record?.accepted === true) over.add(state.record.credential);
    const taken = companionStep(state, event, { atMs, random: draw(100) / 100, key: `key-${keys}` });
    state = taken.state;
    for (const effect of taken.effects) perform(effect);
  };
  const perform = (effect: CompanionEffect): void => {
    switch (effect.type) {
      case "timer":
        timers.set(effect.timer, effect.ms);
        return;
      case "cancel_requests":
        open = open.filter(({ type }) => type === "store" || type === "launch" || type === "ask");
        return;
      case "abort_launch":
      case "ended":
        return;
      case "store":
        expect(over.has(effect.record.credential), "K6: what has ended is not stored").toBe(false);
        break;
      case "enroll":
      case "heartbeat":
      case "poll":
      case "ask":
        break;
      case "launch": {
        const { intent_id: id } = effect.assignment;
        expect(launches, "K1: launched once").not.toContain(id);
        expect(disk?.attempt, "K1: stored before").toEqual({ intent_id: id, key: effect.key, step: "launching" });
        launches.push(id);
        break;
      }
      case "report": {
        const { report } = effect;
        const { client_idempotency_key: key } = report;
        expect(answered.has(key), "K2: not after its end").toBe(false);
        if (isDiskWhole) expect(sent.get(key) ?? report, "K2: the same content").toEqual(report);
        sent.set(key, report);
        const was = report.outcome === "reported_unknown" ? report.outcome : [...returned.values()];
        expect(was, "K3: never made up").toContain(report.outcome);
        break;
      }
    }
    const isRequest = effect.type === "heartbeat" || effect.type === "poll" || effect.type === "report";
    if (isRequest)
      expect(
        open.map(({ type }) => type),
        "K4: one at a time",
      ).not.toContain(effect.type);
    open.push(effect);
  };
  const start = (): void => {
    open = [];
    timers.clear();
    // After a cut before the write, the device still has the credential, and the service refuses it again.
    over.delete(disk?.credential ?? "");
    state = firstCompanionState(canAsk);
    // After a cut before the final answer is stored, the device repeats the report and gets the same answer.
    answered.clear();
    if (disk?.attempt?.step === "answered") answered.add(disk.attempt.key);
    take({ type: "start", record: disk, code: "AAAAA-BBBBB" });
  };
  const failure = (): Failure => (draw(12) === 0 ? REFUSED : (FAILURES[draw(FAILURES.length)] as Failure));
  const complete = (effect: CompanionEffect): void => {
    const fails = draw(4) === 0;
    switch (effect.type) {
      case "store":
        if (draw(10) === 0) {
          isDiskWhole = false;
          return take({ type: "store_failed", revision: effect.revision, detail: "full" });
        }
        disk = effect.record;
        return take({ type: "stored", revision: effect.revision });
      case "enroll":
        if (fails) return take({ type: "enroll_failed", failure: FAILURES[0] as Failure });
        // Sometimes the code is another device's.
        if (draw(4) === 0) deviceId += 1;
        return take({
          type: "enrolled",
          credential: `c${keys}`,
          device: { ...device, device_id: deviceId },
          effective: draw(3) > 0,
        });
      case "heartbeat":
        return take(fails ? { type: "heartbeat_failed", failure: failure() } : { type: "heartbeat_answered", device });
      case "poll": {
        if (fails) return take({ type: "poll_failed", failure: failure() });
        if (isReported && draw(2) === 0) {
          intentId += 1;
          isReported = false;
          isBegun = false;
        }
        // Sometimes no collection is open. A collection that the device has fetched stays open until its report.
        isBegun ||= draw(3) > 0;
        const status = isReported ? "processing" : "presented";
        const assignment = {
          intent_id: intentId,
          intent_display_number: 1,
          order_display_number: 1,
          station_name: "",
          amount: "1.00",
          currency: "EUR",
          handoff_target: "",
          status,
          expires_at: "2026-11-20T12:02:00.000Z",
        };
        return take({ type: "polled", assignment: isBegun ? assignment : null, server_time: TIME });
      }
      case "launch":
      case "ask": {
        const id = effect.type === "ask" ? effect.intent_id : effect.assignment.intent_id;
        const outcome = (["reported_success", "reported_declined", null] as const)[draw(3)] ?? null;
        if (outcome !== null) returned.set(effect.key, outcome);
        return take({ type: "outcome", intent_id: id, key: effect.key, outcome: outcome && { outcome } });
      }
      case "report": {
        const { intent_id: id, client_idempotency_key: key } = effect.report;
        // The service may have recorded the report, although its answer is lost.
        if (id === intentId && draw(4) > 0) isReported = true;
        if (fails) return take({ type: "report_failed", failure: failure() });
        isReported ||= id === intentId;
        answered.add(key);
        const end = draw(5) === 0 ? ENDS[draw(2)] : undefined;
        return take(end === undefined ? { type: "report_answered" } : { type: "report_failed", failure: end });
      }
      case "timer":
      case "cancel_requests":
      case "abort_launch":
      case "ended":
        return;
    }
  };
  const isOpen = (type: CompanionEffect["type"]): boolean => open.some((effect) => effect.type === type);
  return {
    start,
    /** Does one random event. */
    happen(): void {
      atMs += draw(3_000);
      const choice = draw(20);
      if (choice === 0) return start();
      // The whole disk is lost, and the device gets a new code.
      if (choice === 1 && draw(4) === 0) {
        disk = null;
        isDiskWhole = false;
        return start();
      }
      const isTimer = open.length === 0 || choice < 7;
      const [name] = [...timers.keys()].slice(draw(timers.size));
      if (isTimer && name !== undefined) {
        timers.delete(name);
        return take({ type: "timer", timer: name } as CompanionEvent);
      }
      // Writes end in their order. All other effects end in any order.
      const firstStore = open.findIndex(({ type }) => type === "store");
      const drawn = draw(Math.max(1, open.length));
      const index = open[drawn]?.type === "store" ? firstStore : drawn;
      const [effect] = open.splice(index, 1);
      if (effect !== undefined) complete(effect);
    },
    /** Whether the device waits for an event that can still happen. */
    isAlive: () => {
      if (state.phase === "needs_code") return true;
      const waits = { saving: isOpen("store"), launching: timers.has("deadline"), aborted: timers.has("deadline") };
      const works = { ...waits, asking: timers.has("deadline"), waiting: timers.has("poll"), polling: isOpen("poll") };
      if (state.work !== "idle" && state.work !== "off" && !works[state.work]) return false;
      return open.length > 0 || timers.has("heartbeat") || timers.has("enroll");
    },
  };
}

describe("the machine of the companion", () => {
  it("random answers, failures, timers and power cuts: K1 to K4 and K6 hold", () => {
    fc.assert(
      fc.property(fc.infiniteStream(fc.nat({ max: 2 ** 30 })), fc.boolean(), (stream, canAsk) => {
        const draw = (below: number): number => (stream.next().value as number) % Math.max(1, below);
        const world = createWorld(draw, canAsk);
        world.start();
        for (let step = 0; step < MAX_STEPS; step += 1) {
          world.happen();
          expect(world.isAlive(), "K4: it goes on").toBe(true);
        }
      }),
      RUNS,
    );
  });
});

describe("the machine of the display", () => {
  it("random answers, failures and timers: K5 holds", () => {
    const shown = (state: string) => ({
      state,
      order_display_number: 1,
      amount: "1.00",
      currency: "EUR",
      qr_payload: state === "qr" ? "000201" : "",
      intent_status: "",
      server_time: TIME,
    });
    const events = fc.constantFrom<Parameters<typeof displayStep>[1]>(
      ...["qr", "paid", "total"].map((state) => ({ type: "polled" as const, display: shown(state) })),
      { type: "polled" },
      ...FAILURES.map((failure) => ({ type: "poll_failed" as const, failure })),
      ...FAILURES.map((failure) => ({ type: "heartbeat_failed" as const, failure })),
      { type: "heartbeat_answered", device },
      { type: "timer", timer: "poll" },
      { type: "timer", timer: "poll" },
      { type: "timer", timer: "stale" },
      { type: "timer", timer: "heartbeat" },
    );
    fc.assert(
      fc.property(fc.array(events, { maxLength: MAX_STEPS, size: "max" }), (sequence) => {
        const record = {
          device_id: 7,
          credential: "c",
          accepted: true,
          first_poll_pending: false,
          attempt: null,
          reports: [],
        };
        let state = firstDisplayState();
        let view: Extract<DisplayEffect, { type: "render" }>["view"] | undefined;
        let isFromBeforeBlock = false;
        for (const event of [{ type: "start", record, code: null } as const, ...sequence]) {
          if (event.type === "polled" && state.work === "polling") isFromBeforeBlock = false;
          const taken = displayStep(state, event, { atMs: 0, random: 0.5 });
          state = taken.state;
          for (const effect of taken.effects) if (effect.type === "render") view = effect.view;
          expect(view?.isStale).toBe(state.isStale);
          if (state.isStale) expect(["qr", "paid"]).not.toContain(view?.display?.state);
          if (state.blockedReason !== "") isFromBeforeBlock = true;
          if (isFromBeforeBlock) expect(view?.display).toBeNull();
        }
      }),
      RUNS,
    );
  });
});
