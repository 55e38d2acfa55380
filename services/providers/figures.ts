/** What the providers service counts, for its metrics. Every label's values are words of closed lists. */
import type { Registry } from "prom-client";
import { ISSUE_KINDS } from "../bus/messages/issues.ts";
import { addCount, addDuration, addGauge, type Count, type Duration } from "../runtime/metrics.ts";
import type { Sample } from "../runtime/sample.ts";
import type { ProviderFailure } from "./adapters/provider-error.ts";
import { type DueTasks, TASK_KINDS } from "./sql/tasks.ts";

/** How a callback was answered; `failed`: it could not be, and its sender has to repeat it. */
const CALLBACK_ANSWERS = [
  "recorded",
  "duplicate",
  "signature_invalid",
  "throttled",
  "body_too_large",
  "failed",
] as const;
export type CallbackAnswer = (typeof CALLBACK_ANSWERS)[number];

/** Why a callback was refused, as its record says. */
const REFUSAL_REASONS = [
  "config_unknown",
  "signature_invalid",
  "signature_missing",
  "timestamp_stale",
  "body_too_large",
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** What a provider is asked for. */
const CALL_OPERATIONS = [
  "account_open",
  "secret_renew",
  "payment_create",
  "payment_look_up",
  "payment_cancel",
] as const;
export type CallOperation = (typeof CALL_OPERATIONS)[number];

/** `answered`, `failed`, or the failure. */
const CALL_RESULTS = [
  "answered",
  "failed",
  ...([
    "provider_refused",
    "provider_timed_out",
    "provider_unavailable",
    "provider_answer_invalid",
  ] satisfies ProviderFailure[]),
];
/** Of an attempt that did not end its task; an end is counted by its own word. */
const TASK_OUTCOMES = ["postponed", "failed"];

export interface ProviderFigures {
  readonly callbacks: Count<"answer">;
  readonly callbackSeconds: Duration<"answer">;
  readonly refusals: Count<"reason">;
  readonly tasks: Count<"kind" | "outcome">;
  readonly calls: Count<"operation" | "result">;
  readonly callSeconds: Duration<"operation">;
  readonly issues: Count<"kind">;
}

/** Added before the service answers, because it counts from its first callback on. */
export function addProviderFigures(metrics: Registry | undefined): ProviderFigures {
  return {
    callbacks: addCount(metrics, {
      name: "providers_callbacks_total",
      help: "Callbacks by answer: recorded, duplicate, or why nothing was recorded.",
      labels: { answer: CALLBACK_ANSWERS },
    }),
    callbackSeconds: addDuration(metrics, {
      name: "providers_callback_duration_seconds",
      help: "From a callback's arrival here to its answer.",
      labels: { answer: CALLBACK_ANSWERS },
    }),
    refusals: addCount(metrics, {
      name: "providers_callback_refusals_recorded_total",
      help: "Refused callbacks of which a record was kept, by reason.",
      labels: { reason: REFUSAL_REASONS },
    }),
    tasks: addCount(metrics, {
      name: "providers_tasks_total",
      help: "Attempts at tasks, by kind and outcome; postponed: to be tried again; failed: likewise, after an error.",
      labels: { kind: TASK_KINDS, outcome: TASK_OUTCOMES },
    }),
    calls: addCount(metrics, {
      name: "providers_calls_total",
      help: "Calls to providers by operation and result: answered, or the failure's code.",
      labels: { operation: CALL_OPERATIONS, result: CALL_RESULTS },
    }),
    callSeconds: addDuration(metrics, {
      name: "providers_call_duration_seconds",
      help: "From the question to the last byte of its answer, or to the failure.",
      labels: { operation: CALL_OPERATIONS },
    }),
    issues: addCount(metrics, {
      name: "providers_issues_total",
      help: "Issues raised, by kind: money that does not fit.",
      labels: { kind: ISSUE_KINDS },
    }),
  };
}

/** Read when somebody asks; NaN while the database does not answer. */
export function addTaskGauges(metrics: Registry | undefined, due: Sample<DueTasks>): void {
  const read = async (of: (known: DueTasks) => number): Promise<number> => {
    const known = await due();
    return known === undefined ? Number.NaN : of(known);
  };
  addGauge(metrics, "providers_tasks_due", "Tasks that are due and nobody works on, counted to 10,000.", () =>
    read((known) => known.tasks),
  );
  addGauge(metrics, "providers_tasks_oldest_due_age_seconds", "For how long the oldest of those has been due.", () =>
    read((known) => known.oldestAgeMs / 1_000),
  );
}

/** Counts an issue when it is new: money that is told again raises none. `outcome` is its kind whenever there is an id. */
export function countIssue(
  { issues }: Pick<ProviderFigures, "issues">,
  outcome: string,
  issueId: number | undefined,
): void {
  if (issueId !== undefined) issues.add({ kind: outcome });
}
