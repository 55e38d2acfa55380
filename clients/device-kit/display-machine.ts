/**
 * The machine of a customer display (SPEC.md, "The display"): it polls, shows the service's state or hides it, and reports
 * when the state is stale. Pure, like `device-machine.ts`.
 */
import type { DisplayState as Shown } from "./client.ts";
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
  mayAct,
  meaningOf,
  problemOf,
  refused,
  setTimer,
} from "./device-machine.ts";
import { KIT_LIMITS } from "./limits.ts";
import type { Failure } from "./transport.ts";

export interface DisplayMachineState extends DeviceState {
  readonly work: "idle" | "waiting" | "polling" | "off";
  readonly pollFailures: number;
  /** The newest answer. */
  readonly display: Shown | null;
  readonly answeredAtMs: number;
  readonly isStale: boolean;
  /** The device was blocked after the newest answer: the state may have changed since. */
  readonly wasBlocked: boolean;
  /** The shown content, as JSON; empty before the first one. */
  readonly onScreen: string;
}

type DisplayWorkEvent =
  /** The display is undefined when it has not changed. */
  | { readonly type: "polled"; readonly display?: Shown }
  | { readonly type: "poll_failed"; readonly failure: Failure }
  | { readonly type: "timer"; readonly timer: "poll" | "stale" };
export type DisplayEvent = DeviceEvent | DisplayWorkEvent;

export interface View {
  /** Null when the display has nothing that it may show. */
  readonly display: Shown | null;
  /** True when the service has not answered for some time. */
  readonly isStale: boolean;
  /** Empty, or why the device may not act. */
  readonly blockedReason: string;
  readonly needsCode: boolean;
}
export type DisplayWorkEffect =
  | { readonly type: "poll" }
  | { readonly type: "render"; readonly view: View; readonly age_ms: number };
export type DisplayEffect = DeviceEffect | DisplayWorkEffect;

interface DisplayDraft extends DeviceDraft {
  state: DisplayMachineState;
  readonly effects: DisplayEffect[];
}

export function firstDisplayState(): DisplayMachineState {
  return {
    ...FIRST_DEVICE_STATE,
    work: "idle",
    pollFailures: 0,
    display: null,
    answeredAtMs: 0,
    isStale: false,
    wasBlocked: false,
    onScreen: "",
  };
}

export function displayStep(
  state: DisplayMachineState,
  event: DisplayEvent,
  input: Input,
): { readonly state: DisplayMachineState; readonly effects: readonly DisplayEffect[] } {
  const draft: DisplayDraft = {
    state,
    effects: [],
    input,
    isCompanion: false,
    onRequestsCancelled: () => change(draft, { work: "idle", pollFailures: 0, display: null }),
  };
  if (isDeviceEvent(event)) {
    deviceStep(draft, event);
    const hasEnded = state.blockedReason !== "" && draft.state.blockedReason === "";
    // After a block the display shows nothing before the next answer, so it polls at once.
    if (hasEnded && draft.state.work === "waiting") change(draft, { work: "idle" });
  } else workStep(draft, event);
  if (draft.state.blockedReason !== "") change(draft, { wasBlocked: true });
  advance(draft);
  return { state: draft.state, effects: draft.effects };
}

function workStep(draft: DisplayDraft, event: DisplayWorkEvent): void {
  const { work } = draft.state;
  switch (event.type) {
    case "polled":
      return work === "polling" ? polled(draft, event.display) : undefined;
    case "poll_failed":
      return work === "polling" ? pollFailed(draft, event.failure) : undefined;
    case "timer":
      if (event.timer === "stale") return change(draft, { isStale: true });
      return work === "waiting" ? change(draft, { work: "idle" }) : undefined;
  }
}

function polled(draft: DisplayDraft, display: Shown | undefined): void {
  accepted(draft, display?.server_time, "poll");
  change(draft, {
    work: "waiting",
    pollFailures: 0,
    answeredAtMs: draft.input.atMs,
    isStale: false,
    wasBlocked: false,
  });
  if (display !== undefined) change(draft, { display });
  setTimer(draft, "poll", KIT_LIMITS.pollEveryMs);
  setTimer(draft, "stale", KIT_LIMITS.staleAfterMs);
}

function pollFailed(draft: DisplayDraft, failure: Failure): void {
  const pollFailures = draft.state.pollFailures + 1;
  const isStale = draft.state.isStale || pollFailures >= KIT_LIMITS.staleAfterPolls;
  change(draft, { work: "waiting", pollFailures, isStale, problem: problemOf("poll", failure) });
  switch (meaningOf(failure)) {
    case "credential":
      return refused(draft);
    case "blocked":
      change(draft, { blockedReason: failure.code });
      return setTimer(draft, "poll", Math.max(KIT_LIMITS.blockedMs, failure.retry_after_ms));
    case "again":
      return setTimer(
        draft,
        "poll",
        backoffMs(pollFailures, failure.retry_after_ms, draft.input.random, KIT_LIMITS.pollEveryMs),
      );
    case "final":
      return change(draft, { work: "off" });
  }
}

function advance(draft: DisplayDraft): void {
  const { state, input } = draft;
  if (mayAct(state) && state.isReady && state.work === "idle") {
    change(draft, { work: "polling" });
    draft.effects.push({ type: "poll" });
  }
  const view = viewOf(state);
  const onScreen = JSON.stringify(view);
  if (onScreen === state.onScreen || state.phase === "starting") return;
  change(draft, { onScreen });
  draft.effects.push({ type: "render", view, age_ms: state.display === null ? 0 : input.atMs - state.answeredAtMs });
}

/**
 * Hides everything while the device is blocked and then until the next answer, and a state that is no longer certain: a QR
 * code could be paid twice, and `paid` may belong to the previous guest.
 */
function viewOf({ display, isStale, wasBlocked, blockedReason, phase }: DisplayMachineState): View {
  const isHidden = wasBlocked || (isStale && (display?.state === "qr" || display?.state === "paid"));
  return { display: isHidden ? null : display, isStale, blockedReason, needsCode: phase === "needs_code" };
}
