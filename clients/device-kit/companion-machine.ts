/**
 * What a smart POS companion does with a collection (SPEC.md, "The companion"). Pure, like `device-machine.ts`.
 *
 *          poll        an unseen collection   stored          outcome, deadline
 *   idle ──────► polling ─────────► saving ────────► launching ─────────► idle, with a report
 *    ▲              │                                                       │
 *    │  2 seconds   ▼                                                       │ stored, sent, answered
 *    └────────── waiting ◄──────────────────────────────────────────────────┘
 *
 * After a power cut the stored step decides. An attempt in step "launching" is never launched again: the companion asks the
 * payment application for its outcome, or reports it as unknown. A stored result is reported with its key.
 */
import type { Assignment, OutcomeWord, Report } from "./client.ts";
import {
  accepted,
  backoffMs,
  change,
  type DeviceDraft,
  type DeviceEffect,
  type DeviceEvent,
  type DeviceState,
  deviceStep,
  FIRST_DEVICE_STATE,
  type Input,
  isDeviceEvent,
  keep,
  mayAct,
  meaningOf,
  problemOf,
  refused,
  setTimer,
} from "./device-machine.ts";
import { KIT_LIMITS } from "./limits.ts";
import type { Attempt } from "./record.ts";
import type { Failure } from "./transport.ts";

export interface CompanionInput extends Input {
  /** A key that this device has never used. */
  readonly key: string;
}

/** What became of a payment. */
export interface Outcome {
  readonly outcome: OutcomeWord;
  /** The payment application's reference, for example a retrieval number. */
  readonly provider_reference?: string;
  /** Its coded result. */
  readonly provider_code?: string;
}

export interface CompanionState extends DeviceState {
  /** `saving` stores the attempt before its launch; `aborted` waits for the last word after the deadline. */
  readonly work: "idle" | "waiting" | "polling" | "saving" | "launching" | "aborted" | "asking" | "off";
  readonly pollFailures: number;
  /** The next poll is unconditional: it sends no ETag. */
  readonly pollsFresh: boolean;
  /** The current collection. */
  readonly assignment: Assignment | null;
  /** The record's revision that contains the current attempt. */
  readonly attemptRevision: number;
  readonly reporter: "idle" | "sending" | "waiting";
  readonly reportFailures: number;
  /** The record's revision that contains the newest report. */
  readonly reportRevision: number;
  /** Whether the payment application can return the outcome of an earlier payment. */
  readonly canAsk: boolean;
}

type Timer = "poll" | "report" | "deadline";
type CompanionWorkEvent =
  /** `assignment` is undefined when it has not changed. */
  | { readonly type: "polled"; readonly assignment?: Assignment | null; readonly server_time?: string }
  | { readonly type: "poll_failed"; readonly failure: Failure }
  /** The answer to a launch or to `ask`; null when the payment application does not know the outcome. */
  | { readonly type: "outcome"; readonly intent_id: number; readonly key: string; readonly outcome: Outcome | null }
  | { readonly type: "report_answered" }
  | { readonly type: "report_failed"; readonly failure: Failure }
  | { readonly type: "timer"; readonly timer: Timer };
export type CompanionEvent = DeviceEvent | CompanionWorkEvent;

export type CompanionWorkEffect =
  | { readonly type: "poll"; readonly fresh: boolean }
  | { readonly type: "launch"; readonly assignment: Assignment; readonly key: string }
  /** The launch, or the question for its outcome, must end now. */
  | { readonly type: "abort_launch"; readonly key: string }
  | { readonly type: "ask"; readonly intent_id: number; readonly key: string }
  | { readonly type: "report"; readonly report: Report }
  /** This report is not sent again. `failure` is null when the service has recorded it. */
  | { readonly type: "ended"; readonly report: Report; readonly failure: Failure | null };
export type CompanionEffect = DeviceEffect | CompanionWorkEffect;

export interface CompanionStep {
  readonly state: CompanionState;
  readonly effects: readonly CompanionEffect[];
}
interface CompanionDraft extends DeviceDraft {
  state: CompanionState;
  readonly effects: CompanionEffect[];
  readonly input: CompanionInput;
}

export function firstCompanionState(canAsk: boolean): CompanionState {
  return {
    ...FIRST_DEVICE_STATE,
    work: "idle",
    pollFailures: 0,
    pollsFresh: false,
    assignment: null,
    attemptRevision: 0,
    reporter: "idle",
    reportFailures: 0,
    reportRevision: 0,
    canAsk,
  };
}

export function companionStep(state: CompanionState, event: CompanionEvent, input: CompanionInput): CompanionStep {
  const draft: CompanionDraft = {
    state,
    effects: [],
    input,
    isCompanion: true,
    onRequestsCancelled: () => resetRequests(draft),
  };
  if (isDeviceEvent(event)) {
    deviceStep(draft, event);
    const attempt = state.record?.attempt;
    if (event.type === "enrolled" && attempt && draft.state.record?.attempt === null) endWork(draft, attempt);
    if (event.type === "start") resume(draft);
    if (event.type === "store_failed") attemptNotStored(draft, event.revision);
  } else workStep(draft, event);
  advance(draft);
  return { state: draft.state, effects: draft.effects };
}

function workStep(draft: CompanionDraft, event: CompanionWorkEvent): void {
  const { work, reporter } = draft.state;
  switch (event.type) {
    case "polled":
      return work === "polling" ? polled(draft, event) : undefined;
    case "poll_failed":
      return work === "polling" ? pollFailed(draft, event.failure) : undefined;
    case "outcome":
      return outcomeCame(draft, event);
    case "report_answered":
      if (reporter !== "sending") return;
      accepted(draft, undefined, "report");
      return endReport(draft, null);
    case "report_failed":
      return reporter === "sending" ? reportFailed(draft, event.failure) : undefined;
    case "timer":
      return timerFired(draft, event.timer);
  }
}

/** The pending requests have ended without an answer. */
function resetRequests(draft: CompanionDraft): void {
  const { work } = draft.state;
  if (work === "polling" || work === "waiting" || work === "off") change(draft, { work: "idle" });
  change(draft, { reporter: "idle", pollFailures: 0, reportFailures: 0 });
}

/** The device is another one now: the collection that it works on is not its own. */
function endWork(draft: CompanionDraft, { key }: Attempt): void {
  const { work } = draft.state;
  if (work === "launching" || work === "asking") draft.effects.push({ type: "abort_launch", key });
  change(draft, { work: "idle", assignment: null });
}

/** After a power cut: a launched payment may have been paid, so it is never launched again. */
function resume(draft: CompanionDraft): void {
  const attempt = draft.state.record?.attempt;
  if (attempt?.step !== "launching") return;
  if (!draft.state.canAsk) return addResult(draft, attempt, null);
  change(draft, { work: "asking" });
  draft.effects.push({ type: "ask", intent_id: attempt.intent_id, key: attempt.key });
  setTimer(draft, "deadline", KIT_LIMITS.statusMs);
}

/** Starts the next action that the state allows. */
function advance(draft: CompanionDraft): void {
  const { state } = draft;
  const { record } = state;
  if (record === null) return;
  if (state.work === "saving" && state.savedRevision >= state.attemptRevision) launch(draft);
  const [report] = record.reports;
  if (!mayAct(state)) return;
  if (report !== undefined && state.reporter === "idle" && state.savedRevision >= state.reportRevision) {
    change(draft, { reporter: "sending" });
    draft.effects.push({ type: "report", report });
  }
  if (report === undefined && state.isReady && state.work === "idle") {
    change(draft, { work: "polling", pollsFresh: false });
    draft.effects.push({ type: "poll", fresh: state.pollsFresh });
  }
}

function polled(draft: CompanionDraft, event: Extract<CompanionEvent, { type: "polled" }>): void {
  const { assignment } = event;
  accepted(draft, event.server_time, "poll");
  change(draft, { work: "waiting", pollFailures: 0 });
  const record = draft.state.record;
  if (record === null) return;
  const isUnseen =
    assignment !== undefined && assignment !== null && assignment.intent_id !== record.attempt?.intent_id;
  if (!isUnseen) {
    if (record.first_poll_pending) keep(draft, { first_poll_pending: false });
    return setTimer(draft, "poll", KIT_LIMITS.pollEveryMs);
  }
  const attempt = { intent_id: assignment.intent_id, key: draft.input.key, step: "launching" } as const;
  // The device has lost its record, so it may already have launched this payment.
  if (record.first_poll_pending) {
    change(draft, { work: "idle" });
    return addResult(draft, attempt, null);
  }
  // A report is already recorded, or a later version of the service has a new status: there is nothing to launch.
  if (assignment.status !== "presented" && assignment.status !== "created")
    return setTimer(draft, "poll", KIT_LIMITS.pollEveryMs);
  const attemptRevision = keep(draft, { attempt });
  change(draft, { work: "saving", assignment, attemptRevision });
}

/** An attempt that could not be stored is not launched: after a power cut the device would launch it again. */
function attemptNotStored(draft: CompanionDraft, revision: number): void {
  const { state, input } = draft;
  if (state.work !== "saving" || revision < state.attemptRevision || state.record === null) return;
  change(draft, { work: "waiting", pollsFresh: true, record: { ...state.record, attempt: null } });
  change(draft, { assignment: null, pollFailures: state.pollFailures + 1 });
  setTimer(draft, "poll", backoffMs(state.pollFailures + 1, 0, input.random));
}

function launch(draft: CompanionDraft): void {
  const { assignment, record, clockOffsetMs } = draft.state;
  const attempt = record?.attempt;
  if (!assignment || !attempt) return;
  const leftMs = Date.parse(assignment.expires_at) - draft.input.atMs - (clockOffsetMs ?? 0);
  change(draft, { work: "launching" });
  draft.effects.push({ type: "launch", assignment, key: attempt.key });
  setTimer(draft, "deadline", leftMs > 0 ? Math.min(leftMs, KIT_LIMITS.collectionMaxMs) : 0);
}

function outcomeCame(draft: CompanionDraft, event: Extract<CompanionEvent, { type: "outcome" }>): void {
  const { work, record } = draft.state;
  const attempt = record?.attempt;
  const isExpected = work === "launching" || work === "aborted" || work === "asking";
  if (isExpected && attempt?.key === event.key) {
    change(draft, { work: "idle", assignment: null });
    return addResult(draft, attempt, event.outcome);
  }
  // Late evidence: the attempt is already reported as unknown. The certain outcome becomes a second report with a new key.
  const { outcome } = event;
  if (outcome === null || outcome.outcome === "reported_unknown") return;
  addReport(draft, { intent_id: event.intent_id, key: draft.input.key }, outcome, {});
}

/** Stores the result of an attempt before it is reported. A null outcome is unknown: neither a success nor a decline. */
function addResult(draft: CompanionDraft, attempt: Attempt, outcome: Outcome | null): void {
  const result = outcome ?? { outcome: "reported_unknown" };
  addReport(draft, attempt, result, { attempt: { ...attempt, step: "result" }, first_poll_pending: false });
}

function addReport(
  draft: CompanionDraft,
  { intent_id, key }: { readonly intent_id: number; readonly key: string },
  outcome: Outcome,
  changes: object,
): void {
  const report: Report = {
    intent_id,
    outcome: outcome.outcome,
    provider_reference: (outcome.provider_reference ?? "").slice(0, KIT_LIMITS.textMaxChars),
    provider_code: (outcome.provider_code ?? "").slice(0, KIT_LIMITS.textMaxChars),
    client_idempotency_key: key,
  };
  const reports = [...(draft.state.record?.reports ?? []), report];
  change(draft, { reportRevision: keep(draft, { ...changes, reports }) });
}

/** Removes a report that has its final answer. */
function endReport(draft: CompanionDraft, failure: Failure | null): void {
  const [report, ...reports] = draft.state.record?.reports ?? [];
  if (report === undefined) return;
  const attempt = draft.state.record?.attempt;
  const isOfAttempt = attempt?.key === report.client_idempotency_key;
  change(draft, { reporter: "idle", reportFailures: 0 });
  draft.effects.push({ type: "ended", report, failure });
  keep(draft, { reports, ...(isOfAttempt ? { attempt: { ...attempt, step: "answered" } } : {}) });
}

function reportFailed(draft: CompanionDraft, failure: Failure): void {
  const { reportFailures } = draft.state;
  const meaning = meaningOf(failure);
  const isAnswer = failure.code === "handoff_not_assigned" || failure.code === "intent_not_actionable";
  if (!isAnswer) change(draft, { problem: problemOf("report", failure) });
  switch (meaning) {
    case "credential":
      change(draft, { reporter: "idle" });
      return refused(draft);
    case "blocked":
      change(draft, { reporter: "waiting", blockedReason: failure.code });
      return setTimer(draft, "report", Math.max(KIT_LIMITS.blockedMs, failure.retry_after_ms));
    case "again":
      change(draft, { reporter: "waiting", reportFailures: reportFailures + 1 });
      return setTimer(draft, "report", backoffMs(reportFailures, failure.retry_after_ms, draft.input.random));
    case "final":
      return endReport(draft, failure);
  }
}

function pollFailed(draft: CompanionDraft, failure: Failure): void {
  const { pollFailures } = draft.state;
  change(draft, { work: "waiting", problem: problemOf("poll", failure) });
  switch (meaningOf(failure)) {
    case "credential":
      return refused(draft);
    case "blocked":
      change(draft, { blockedReason: failure.code });
      return setTimer(draft, "poll", Math.max(KIT_LIMITS.blockedMs, failure.retry_after_ms));
    case "again":
      change(draft, { pollFailures: pollFailures + 1 });
      return setTimer(draft, "poll", backoffMs(pollFailures, failure.retry_after_ms, draft.input.random));
    case "final":
      return change(draft, { work: "off" });
  }
}

function timerFired(draft: CompanionDraft, timer: Timer): void {
  const { work, reporter, record } = draft.state;
  if (timer === "poll" && work === "waiting") return change(draft, { work: "idle" });
  if (timer === "report" && reporter === "waiting") return change(draft, { reporter: "idle" });
  const attempt = record?.attempt;
  if (timer !== "deadline" || !attempt) return;
  if (work === "launching") {
    draft.effects.push({ type: "abort_launch", key: attempt.key });
    change(draft, { work: "aborted" });
    return setTimer(draft, "deadline", KIT_LIMITS.graceMs);
  }
  if (work !== "aborted" && work !== "asking") return;
  if (work === "asking") draft.effects.push({ type: "abort_launch", key: attempt.key });
  change(draft, { work: "idle", assignment: null });
  addResult(draft, attempt, null);
}
