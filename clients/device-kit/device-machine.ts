/**
 * The machine that both kinds of device share: they get a credential, store it, send heartbeats, and handle each failure. It is
 * pure: time, randomness and keys are inputs, and actions are returned as effects. `SPEC.md` has the table.
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
  /** At least 0 and below 1; it randomizes the waits. */
  readonly random: number;
}

/** The last problem, for a person and for the heartbeat. */
export interface Problem {
  readonly where: "storage" | "enroll" | "heartbeat" | "poll" | "report" | "launch";
  readonly code: string;
  readonly detail: string;
  readonly request_id: string;
}

export interface DeviceState {
  readonly phase: "starting" | "needs_code" | "enrolling" | "enrolled";
  readonly record: DeviceRecord | null;
  /** Counts the changes of the record. The changes up to `savedRevision` are stored. */
  readonly revision: number;
  readonly savedRevision: number;
  /** A one-time code that the service has not answered yet. */
  readonly code: string | null;
  /** The code of the newest request. */
  readonly sentCode: string | null;
  readonly enrollFailures: number;
  readonly heartbeat: "off" | "waiting" | "sending";
  readonly heartbeatFailures: number;
  /** The service has accepted a heartbeat since the start. */
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
/** Whether this event belongs to both kinds; other events belong to one kind. */
export function isDeviceEvent(event: { readonly type: string; readonly timer?: string }): event is DeviceEvent {
  if (event.type === "timer") return event.timer === "enroll" || event.timer === "heartbeat";
  return EVENTS.indexOf(event.type) >= 0;
}

export type DeviceEffect =
  | { readonly type: "store"; readonly revision: number; readonly record: DeviceRecord }
  | { readonly type: "enroll"; readonly code: string }
  | { readonly type: "heartbeat" }
  /** Ends the pending requests; their answers are no events. */
  | { readonly type: "cancel_requests" }
  /** Sets a timer, and replaces a timer of the same name. */
  | {
      readonly type: "timer";
      readonly timer: "enroll" | "heartbeat" | "poll" | "report" | "deadline" | "stale";
      readonly ms: number;
    };

/** A step in progress: the next state and the effects so far. */
export interface DeviceDraft {
  state: DeviceState;
  readonly effects: { push(effect: DeviceEffect): unknown };
  readonly input: Input;
  readonly isCompanion: boolean;
  /** Resets the state that waits for the answer to a cancelled request. */
  readonly onRequestsCancelled: () => void;
}

export const FIRST_DEVICE_STATE: DeviceState = {
  phase: "starting",
  record: null,
  revision: 0,
  savedRevision: 0,
  code: null,
  sentCode: null,
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

/** A random wait between half of the doubled wait and all of it, or longer when the service asks for it. */
export function backoffMs(
  failures: number,
  retryAfterMs: number,
  random: number,
  maxMs: number = KIT_LIMITS.backoffMaxMs,
): number {
  const fullMs = Math.min(maxMs, KIT_LIMITS.backoffFirstMs * 2 ** Math.min(failures, 20));
  return Math.max(retryAfterMs, Math.round(fullMs * (0.5 + random / 2)));
}

/** The meaning of a failure for its request. */
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

/** Changes the record and stores it. Returns the revision that contains the change. */
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

/** Handles the events that both kinds share. */
export function deviceStep(device: DeviceDraft, event: DeviceEvent): void {
  const { state, input } = device;
  switch (event.type) {
    case "start": {
      const record = event.record === "damaged" ? null : event.record;
      const problem = record === event.record ? null : storageProblem("The stored record is damaged.");
      change(device, { record, code: state.code ?? event.code, problem });
      return record === null || record.credential === "" ? needCode(device) : beginHeartbeats(device);
    }
    case "code": {
      // Enrolled by an earlier code, and the credential is not stored yet.
      if (state.phase === "enrolling" && state.code === null) return;
      change(device, { code: event.code });
      if (state.phase === "needs_code") return needCode(device);
      // The service has never accepted the credential, so it may already have ended. A person who enters a code knows that.
      return state.phase === "enrolled" && state.record?.accepted === false ? renew(device) : undefined;
    }
    case "enrolled":
      return state.phase === "enrolling" ? enrolled(device, event) : undefined;
    case "enroll_failed": {
      if (state.phase !== "enrolling") return;
      const { failure } = event;
      change(device, { problem: problemOf("enroll", failure) });
      // A person may have entered another code meanwhile.
      if (meaningOf(failure) !== "again") return needCode(device, state.code === state.sentCode);
      setTimer(device, "enroll", backoffMs(state.enrollFailures, failure.retry_after_ms, input.random));
      return change(device, { enrollFailures: state.enrollFailures + 1 });
    }
    case "stored":
    case "store_failed": {
      change(device, { savedRevision: event.revision });
      if (event.type === "store_failed") change(device, { problem: storageProblem(event.detail) });
      else if (state.problem?.where === "storage") change(device, { problem: null });
      // A credential that could not be stored is still valid until the power is cut.
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
      if (event.timer === "enroll" && state.phase === "enrolling" && state.code !== null) sendCode(device, state.code);
      return;
    default:
      return event satisfies never;
  }
}

function storageProblem(detail: string): Problem {
  return { where: "storage", code: "storage", detail, request_id: "" };
}

/** Uses the code that the device has, or waits for one. */
function needCode(draft: DeviceDraft, isSpent = false): void {
  const code = isSpent ? null : draft.state.code;
  change(draft, { phase: code === null ? "needs_code" : "enrolling", code, enrollFailures: 0 });
  if (code !== null) sendCode(draft, code);
}

function sendCode(draft: DeviceDraft, code: string): void {
  change(draft, { sentCode: code });
  draft.effects.push({ type: "enroll", code });
}

/** The code is spent now, so the device first stores the credential. */
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
    // Attempts and reports of another device do not belong to this device.
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
    // A device that may be sold or stolen must not keep an ended credential. Pending reports stay.
    keep(draft, { credential: "" });
    return renew(draft);
  }
  change(draft, { heartbeat: "waiting" });
  setTimer(draft, "heartbeat", KIT_LIMITS.notEffectiveMs);
}

/** Discards the credential: the device needs a new code. */
function renew(draft: DeviceDraft): void {
  draft.effects.push({ type: "cancel_requests" });
  change(draft, { heartbeat: "off", isReady: false });
  draft.onRequestsCancelled();
  needCode(draft);
}

/** After an accepted request: the credential is effective, the device is not blocked, and the service's time is known. */
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
