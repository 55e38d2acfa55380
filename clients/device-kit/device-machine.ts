/**
 * What both kinds of device do: they get their credential, keep it, send heartbeats, and answer each failure. Pure: time,
 * randomness and keys are inputs, and what has to be done comes out as effects. `SPEC.md` has the table.
 *
 *             start                 enrolled, stored
 *   starting ───────► enrolling ─────────────────────► enrolled
 *       │  ▲              │ ▲                             │
 *       │  └─ (program)   ▼ │ a code                      │ 401
 *       └────────────► needs_code ◄───────────────────────┘
 */
import type { DeviceSnapshot } from "./client.ts";
import { KIT_LIMITS } from "./limits.ts";
import type { DeviceRecord } from "./record.ts";
import type { Failure } from "./transport.ts";

export interface Input {
  /** On a monotonic clock. */
  readonly atMs: number;
  /** From 0 up to 1; draws the waits. */
  readonly random: number;
}

/** What went wrong last, for a person and for the heartbeat. */
export interface Problem {
  readonly where: "storage" | "enroll" | "heartbeat" | "poll" | "report" | "launch";
  readonly code: string;
  readonly detail: string;
  readonly request_id: string;
}

export interface DeviceState {
  readonly phase: "starting" | "needs_code" | "enrolling" | "enrolled";
  readonly record: DeviceRecord | null;
  /** Counts the changes of the record; those up to `savedRevision` are stored. */
  readonly revision: number;
  readonly savedRevision: number;
  /** A one-time code that was not yet tried. */
  readonly code: string | null;
  readonly enrollFailures: number;
  readonly heartbeat: "off" | "waiting" | "sending";
  readonly heartbeatFailures: number;
  /** A heartbeat was accepted since the start. */
  readonly isReady: boolean;
  /** Empty, or why the device may not act now. */
  readonly blockedReason: string;
  readonly snapshot: DeviceSnapshot | null;
  /** The service's time minus `atMs`; null until it is known. */
  readonly clockOffsetMs: number | null;
  readonly problem: Problem | null;
}

export type DeviceEvent =
  | { readonly type: "start"; readonly record: DeviceRecord | null | "damaged"; readonly code: string | null }
  /** A person has entered a code. */
  | { readonly type: "code"; readonly code: string }
  | {
      readonly type: "enrolled";
      readonly credential: string;
      readonly device: DeviceSnapshot;
      readonly effective: boolean;
    }
  | { readonly type: "enroll_failed"; readonly failure: Failure }
  | { readonly type: "stored"; readonly revision: number }
  | { readonly type: "store_failed"; readonly revision: number; readonly detail: string }
  | { readonly type: "heartbeat_answered"; readonly device: DeviceSnapshot }
  | { readonly type: "heartbeat_failed"; readonly failure: Failure }
  | { readonly type: "timer"; readonly timer: "enroll" | "heartbeat" };

const EVENTS: readonly string[] = [
  "start",
  "code",
  "enrolled",
  "enroll_failed",
  "stored",
  "store_failed",
  "heartbeat_answered",
  "heartbeat_failed",
];
/** Whether both kinds take this event; the others are the kind's alone. */
export function isDeviceEvent(event: { readonly type: string; readonly timer?: string }): event is DeviceEvent {
  if (event.type === "timer") return event.timer === "enroll" || event.timer === "heartbeat";
  return EVENTS.indexOf(event.type) >= 0;
}

export type DeviceEffect =
  | { readonly type: "store"; readonly revision: number; readonly record: DeviceRecord }
  | { readonly type: "enroll"; readonly code: string }
  | { readonly type: "heartbeat" }
  /** Ends the requests under way; their answers are no events. */
  | { readonly type: "cancel_requests" }
  /** Sets a timer; one of the same name is replaced. */
  | {
      readonly type: "timer";
      readonly timer: "enroll" | "heartbeat" | "poll" | "report" | "deadline" | "stale";
      readonly ms: number;
    };

/** A step under way: the next state as far as it is known, and the effects so far. */
export interface DeviceDraft {
  state: DeviceState;
  readonly effects: { push(effect: DeviceEffect): unknown };
  readonly input: Input;
  readonly isCompanion: boolean;
  /** Puts back what waits for the answer of a request. */
  readonly onRequestsCancelled: () => void;
}

export const FIRST_DEVICE_STATE: DeviceState = {
  phase: "starting",
  record: null,
  revision: 0,
  savedRevision: 0,
  code: null,
  enrollFailures: 0,
  heartbeat: "off",
  heartbeatFailures: 0,
  isReady: false,
  blockedReason: "",
  snapshot: null,
  clockOffsetMs: null,
  problem: null,
};

export function change<S extends DeviceState>(draft: { state: S }, changes: Partial<NoInfer<S>>): void {
  draft.state = { ...draft.state, ...changes };
}

/** Random between half and all of the doubled wait, or longer when the service asks for it. */
export function backoffMs(
  failures: number,
  retryAfterMs: number,
  random: number,
  maxMs: number = KIT_LIMITS.backoffMaxMs,
): number {
  const fullMs = Math.min(maxMs, KIT_LIMITS.backoffFirstMs * 2 ** Math.min(failures, 20));
  return Math.max(retryAfterMs, Math.round(fullMs * (0.5 + random / 2)));
}

/** What a failure means for the request that got it. */
export type Meaning = "credential" | "blocked" | "again" | "final";
export function meaningOf({ status, code }: Failure): Meaning {
  if (status === 401) return "credential";
  if (status === 403 && code !== "scope_denied") return "blocked";
  return status === 0 || status === 408 || status === 429 || status >= 500 ? "again" : "final";
}

export const problemOf = (where: Problem["where"], { code, detail, request_id }: Failure): Problem => ({
  where,
  code,
  detail,
  request_id,
});

/** Changes the record and stores it. Returns the revision that has the change. */
export function keep(draft: DeviceDraft, changes: Partial<DeviceRecord>): number {
  const record = { ...draft.state.record, ...changes } as DeviceRecord;
  const revision = draft.state.revision + 1;
  change(draft, { record, revision });
  draft.effects.push({ type: "store", revision, record });
  return revision;
}

export function setTimer(
  draft: DeviceDraft,
  timer: Extract<DeviceEffect, { type: "timer" }>["timer"],
  ms: number,
): void {
  draft.effects.push({ type: "timer", timer, ms });
}

/** Takes the events that both kinds share. */
export function deviceStep(device: DeviceDraft, event: DeviceEvent): void {
  const { state, input } = device;
  switch (event.type) {
    case "start": {
      const record = event.record === "damaged" ? null : event.record;
      const problem = record === event.record ? null : storageProblem("The stored record is damaged.");
      change(device, { record, code: event.code, problem });
      return record === null || record.credential === "" ? needCode(device) : beginHeartbeats(device);
    }
    case "code": {
      change(device, { code: event.code });
      if (state.phase === "needs_code") return needCode(device);
      // A credential that was never accepted may have ended before; a person knows.
      return state.phase === "enrolled" && state.record?.accepted === false ? renew(device) : undefined;
    }
    case "enrolled":
      return state.phase === "enrolling" ? enrolled(device, event) : undefined;
    case "enroll_failed": {
      if (state.phase !== "enrolling") return;
      const { failure } = event;
      change(device, { problem: problemOf("enroll", failure) });
      if (meaningOf(failure) !== "again") return needCode(device, true);
      setTimer(device, "enroll", backoffMs(state.enrollFailures, failure.retry_after_ms, input.random));
      return change(device, { enrollFailures: state.enrollFailures + 1 });
    }
    case "stored":
    case "store_failed": {
      change(device, { savedRevision: event.revision });
      if (event.type === "store_failed") change(device, { problem: storageProblem(event.detail) });
      else if (state.problem?.where === "storage") change(device, { problem: null });
      // A credential that could not be stored is still good until the power is cut.
      const isEnrolled = state.phase === "enrolling" && state.code === null;
      if (isEnrolled && event.revision === state.revision) beginHeartbeats(device);
      return;
    }
    case "heartbeat_answered": {
      if (state.heartbeat !== "sending") return;
      accepted(device, event.device.server_time, "heartbeat");
      change(device, {
        heartbeat: "waiting",
        heartbeatFailures: 0,
        isReady: true,
        snapshot: event.device,
        blockedReason: event.device.blocked_reason,
      });
      return setTimer(device, "heartbeat", KIT_LIMITS.heartbeatEveryMs);
    }
    case "heartbeat_failed":
      if (state.heartbeat === "sending") heartbeatFailed(device, event.failure);
      return;
    case "timer":
      if (event.timer === "heartbeat" && state.heartbeat === "waiting") sendHeartbeat(device);
      if (event.timer === "enroll" && state.phase === "enrolling" && state.code !== null)
        device.effects.push({ type: "enroll", code: state.code });
      return;
    default:
      return event satisfies never;
  }
}

function storageProblem(detail: string): Problem {
  return { where: "storage", code: "storage", detail, request_id: "" };
}

/** Uses the code at hand, or waits for one. */
function needCode(draft: DeviceDraft, isSpent = false): void {
  const code = isSpent ? null : draft.state.code;
  change(draft, { phase: code === null ? "needs_code" : "enrolling", code, enrollFailures: 0 });
  if (code !== null) draft.effects.push({ type: "enroll", code });
}

/** The code is spent now, so the credential is stored before all else. */
function enrolled(
  draft: DeviceDraft,
  { credential, device, effective }: Extract<DeviceEvent, { type: "enrolled" }>,
): void {
  const { record } = draft.state;
  const isSame = record !== null && record.device_id === device.device_id;
  change(draft, { code: null, enrollFailures: 0, snapshot: device, problem: null });
  noteTime(draft, device.server_time);
  keep(draft, {
    device_id: device.device_id,
    credential,
    accepted: effective,
    first_poll_pending: draft.isCompanion,
    // Another device's collections are not this one's.
    attempt: isSame ? record.attempt : null,
    reports: isSame ? record.reports : [],
  });
}

function beginHeartbeats(draft: DeviceDraft): void {
  change(draft, { phase: "enrolled", heartbeatFailures: 0, blockedReason: "" });
  sendHeartbeat(draft);
}

function sendHeartbeat(draft: DeviceDraft): void {
  change(draft, { heartbeat: "sending" });
  draft.effects.push({ type: "heartbeat" });
}

function heartbeatFailed(device: DeviceDraft, failure: Failure): void {
  const { heartbeatFailures, isReady } = device.state;
  const { heartbeatEveryMs, firstHeartbeatMs, blockedMs } = KIT_LIMITS;
  const mostMs = isReady ? heartbeatEveryMs : firstHeartbeatMs;
  change(device, { heartbeat: "waiting", problem: problemOf("heartbeat", failure) });
  switch (meaningOf(failure)) {
    case "credential":
      return refused(device);
    case "blocked":
      change(device, { blockedReason: failure.code });
      return setTimer(device, "heartbeat", Math.max(blockedMs, failure.retry_after_ms));
    case "again":
      change(device, { heartbeatFailures: heartbeatFailures + 1 });
      return setTimer(
        device,
        "heartbeat",
        backoffMs(heartbeatFailures, failure.retry_after_ms, device.input.random, mostMs),
      );
    case "final":
      return change(device, { heartbeat: "off" });
  }
}

/** The service has refused the credential: it has ended, unless it was never accepted and is not yet known everywhere. */
export function refused(draft: DeviceDraft): void {
  if (draft.state.record?.accepted !== false) {
    // What has ended is not kept on a device that may be sold or stolen. What is not reported yet stays.
    keep(draft, { credential: "" });
    return renew(draft);
  }
  change(draft, { heartbeat: "waiting" });
  setTimer(draft, "heartbeat", KIT_LIMITS.notEffectiveMs);
}

/** From now on the device has no credential. */
function renew(draft: DeviceDraft): void {
  draft.effects.push({ type: "cancel_requests" });
  change(draft, { heartbeat: "off", isReady: false });
  draft.onRequestsCancelled();
  needCode(draft);
}

/** A request was accepted, so the credential is known, nothing blocks the device, and the service's clock is read. */
export function accepted(device: DeviceDraft, serverTime: string | undefined, where: Problem["where"]): void {
  const { state } = device;
  change(device, { blockedReason: "" });
  if (state.problem?.where === where) change(device, { problem: null });
  if (serverTime !== undefined) noteTime(device, serverTime);
  if (state.record?.accepted === false) keep(device, { accepted: true });
}

function noteTime(draft: DeviceDraft, serverTime: string): void {
  const serverMs = Date.parse(serverTime);
  if (Number.isFinite(serverMs)) change(draft, { clockOffsetMs: serverMs - draft.input.atMs });
}

/** Whether requests other than heartbeats may be sent. */
export function mayAct({ phase, record }: DeviceState): boolean {
  return phase === "enrolled" && record !== null && record.accepted;
}
