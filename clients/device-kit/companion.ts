/** A smart POS companion. The integrator writes `launch` and, where the payment application can answer it, `status`. */
import { type Assignment, OUTCOMES, type Report } from "./client.ts";
import {
  type CompanionEvent,
  type CompanionOwnEffect,
  type CompanionState,
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
   * Lets the guest pay, and returns what the payment application returned. It is called once for each collection. When it
   * throws, returns null or is not done at the deadline, the outcome is unknown. The signal is aborted at the deadline: what
   * is returned later is reported as well.
   */
  readonly launch: (launch: Launch, signal: AbortSignal) => Promise<Outcome | null>;
  /** After a power cut: what became of this attempt, or null when the payment application does not know. */
  readonly status?: (reference: string, signal: AbortSignal) => Promise<Outcome | null>;
  /** Called when a report was answered for good; the failure is null when the service has recorded it. */
  readonly onReported?: (report: Report, failure: Failure | null) => void;
}
export type Companion = Device<CompanionState>;

/** Starts a companion. It runs until it is stopped. */
export function companion(options: CompanionOptions): Companion {
  const { launch, status, onReported } = options;
  const aborts: Record<string, AbortController> = {};
  /** Runs a function of the integrator; whatever it does, its end is an event. */
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
    // In a promise: a function that throws at once fails as one that throws later.
    Promise.resolve()
      .then(() => run(abort.signal))
      .then(usable, () => null)
      .then(end)
      .catch(() => undefined);
  };
  return runDevice<CompanionState, CompanionEvent, CompanionOwnEffect>(options, {
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

/** An outcome that is none of the four is unknown; its fields are texts. */
function usable(outcome: Outcome | null): Outcome | null {
  if (outcome === null || typeof outcome !== "object" || OUTCOMES.indexOf(outcome.outcome) < 0) return null;
  return {
    outcome: outcome.outcome,
    provider_reference: textOf(outcome.provider_reference),
    provider_code: textOf(outcome.provider_code),
  };
}

/** Keys of one device have to differ; they are no secret. */
function newKey({ random }: Platform): string {
  const part = (): string => Math.floor(random() * 2 ** 48).toString(36);
  return `${Date.now().toString(36)}-${part()}-${part()}`;
}
