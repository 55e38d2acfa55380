/** A smart POS companion. The integrator writes `launch`, and also `status` if the payment application supports it. */
import { type Assignment, OUTCOMES, type Report } from "./client.ts";
import {
  type CompanionEvent,
  type CompanionState,
  type CompanionWorkEffect,
  companionStep,
  firstCompanionState,
  type Outcome,
} from "./companion-machine.ts";
import { textOf } from "./guards.ts";
import type { Platform } from "./platform.ts";
import { type Device, type DeviceOptions, type Requests, runDevice } from "./run-device.ts";
import type { Failure } from "./transport.ts";

export interface Launch extends Assignment {
  /** The device's reference of this attempt: give it to the payment application, so that `status` can ask by it. */
  readonly reference: string;
}

export interface CompanionOptions extends DeviceOptions<CompanionState> {
  /**
   * Lets the guest pay, and returns the result of the payment application. The kit calls it once for each collection. When it
   * throws, returns null or has not ended at the deadline, the outcome is unknown. The kit aborts the signal at the deadline;
   * it also reports a result that is returned later.
   */
  readonly launch: (launch: Launch, signal: AbortSignal) => Promise<Outcome | null>;
  /** After a power cut: the outcome of this attempt, or null when the payment application does not know it. */
  readonly status?: (reference: string, signal: AbortSignal) => Promise<Outcome | null>;
  /** Called after the final answer to a report; the failure is null when the service has recorded the report. */
  readonly onReported?: (report: Report, failure: Failure | null) => void;
}
export type Companion = Device<CompanionState>;

/** Starts a companion. It runs until it is stopped. */
export function companion(options: CompanionOptions): Companion {
  const { launch, status, onReported } = options;
  const aborts: Record<string, AbortController> = {};
  /** Runs a function of the integrator. Each way in which it ends is an event. */
  const outcomeOf = (
    { intent_id, key }: { readonly intent_id: number; readonly key: string },
    requests: Requests<CompanionEvent>,
    run: (signal: AbortSignal) => Promise<Outcome | null>,
  ): void => {
    const abort = new AbortController();
    aborts[key] = abort;
    const end = (outcome: Outcome | null): void => {
      delete aborts[key];
      requests.dispatch({ type: "outcome", intent_id, key, outcome });
    };
    // In a promise, so that a function that throws at once is handled like one that rejects later.
    Promise.resolve()
      .then(() => run(abort.signal))
      .then(usable, () => null)
      .then(end)
      .catch(() => undefined);
  };
  return runDevice<CompanionState, CompanionEvent, CompanionWorkEffect>(options, {
    first: firstCompanionState(status !== undefined),
    step: (state, event, platform) =>
      companionStep(state, event, { atMs: platform.nowMs(), random: platform.random(), key: newKey(platform) }),
    perform(effect, requests) {
      const { client } = requests;
      switch (effect.type) {
        case "poll":
          if (effect.fresh) client.forgetEtags();
          return requests.send(
            client.assignment(),
            ({ value }) => ({ type: "polled", ...value }),
            (failure) => ({ type: "poll_failed", failure }),
          );
        case "report":
          return requests.send(
            client.report(effect.report),
            () => ({ type: "report_answered" }),
            (failure) => ({ type: "report_failed", failure }),
          );
        case "launch": {
          const { assignment, key } = effect;
          const attempt = { intent_id: assignment.intent_id, key };
          return outcomeOf(attempt, requests, (signal) => launch({ ...assignment, reference: key }, signal));
        }
        case "ask":
          return outcomeOf(effect, requests, async (signal) => (await status?.(effect.key, signal)) ?? null);
        case "abort_launch":
          return aborts[effect.key]?.abort();
        case "ended":
          return requests.callBack(() => onReported?.(effect.report, effect.failure));
      }
    },
  });
}

/** Returns the outcome with text fields, or null (unknown) when it is none of the four outcomes. */
function usable(outcome: Outcome | null): Outcome | null {
  if (outcome === null || typeof outcome !== "object" || OUTCOMES.indexOf(outcome.outcome) < 0) return null;
  return {
    outcome: outcome.outcome,
    provider_reference: textOf(outcome.provider_reference),
    provider_code: textOf(outcome.provider_code),
  };
}

/** The keys of one device must differ. They are not secret. */
function newKey({ random }: Platform): string {
  const part = (): string => Math.floor(random() * 2 ** 48).toString(36);
  return `${Date.now().toString(36)}-${part()}-${part()}`;
}
