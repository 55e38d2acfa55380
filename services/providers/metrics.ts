/** The metrics of the providers service. Every label has a closed list of values. */
import type { Registry } from "prom-client";
import { CALLBACK_ISSUE_KINDS } from "../bus/messages/issues.ts";
import { addCount, addDuration, addGauge, type Count, type Duration } from "../runtime/metrics.ts";
import type { Sample } from "../runtime/repeat.ts";
import type { ProviderFailure } from "./adapters/adapter.ts";
import { type OpenTasks, TASK_KINDS } from "./sql/tasks.ts";

/** How a callback was answered. `failed`: the service could not answer, and the provider has to repeat the callback. */
const CALLBACK_ANSWERS = [
  "recorded",
  "duplicate",
  "signature_invalid",
  "throttled",
  "body_too_large",
  "failed",
] as const;
export type CallbackAnswer = (typeof CALLBACK_ANSWERS)[number];

/** Why a callback was refused, as in its record. */
const REFUSAL_REASONS = [
  "config_unknown",
  "signature_invalid",
  "signature_missing",
  "timestamp_stale",
  "body_too_large",
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** The calls to providers. */
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
/** The outcomes of an attempt that did not end its task. An end is counted by the outcome of its task. */
const TASK_OUTCOMES = ["postponed", "failed"];

export interface ProviderMetrics {
  readonly callbacks: Count<"answer">;
  readonly callbackSeconds: Duration<"answer">;
  readonly refusals: Count<"reason">;
  readonly tasks: Count<"kind" | "outcome">;
  readonly calls: Count<"operation" | "result">;
  readonly callSeconds: Duration<"operation">;
  readonly issues: Count<"kind">;
}

/** Added before the service answers, so that its first callback counts. */
export function addProviderMetrics(registry: Registry | undefined): ProviderMetrics {
  return {
    callbacks: addCount(registry, {
      name: "providers_callbacks_total",
      help: "Callbacks by answer: recorded, duplicate, or why nothing was recorded.",
      labels: { answer: CALLBACK_ANSWERS },
    }),
    callbackSeconds: addDuration(registry, {
      name: "providers_callback_duration_seconds",
      help: "From a callback's arrival here to its answer.",
      labels: { answer: CALLBACK_ANSWERS },
    }),
    refusals: addCount(registry, {
      name: "providers_callback_refusals_recorded_total",
      help: "Refused callbacks of which a record was kept, by reason.",
      labels: { reason: REFUSAL_REASONS },
    }),
    tasks: addCount(registry, {
      name: "providers_tasks_total",
      help: "Attempts at tasks, by kind and outcome; postponed: to be tried again; failed: likewise, after an error.",
      labels: { kind: TASK_KINDS, outcome: TASK_OUTCOMES },
    }),
    calls: addCount(registry, {
      name: "providers_calls_total",
      help: "Calls to providers by operation and result: answered, or the failure's code.",
      labels: { operation: CALL_OPERATIONS, result: CALL_RESULTS },
    }),
    callSeconds: addDuration(registry, {
      name: "providers_call_duration_seconds",
      help: "From the question to the last byte of its answer, or to the failure.",
      labels: { operation: CALL_OPERATIONS },
    }),
    issues: addCount(registry, {
      name: "providers_issues_total",
      help: "Issues raised, by kind.",
      labels: { kind: CALLBACK_ISSUE_KINDS },
    }),
  };
}

/** Read at each scrape; NaN while the database does not answer. */
export function addTaskGauges(registry: Registry | undefined, open: Sample<OpenTasks>): void {
  const read = async (of: (known: OpenTasks) => number): Promise<number> => {
    const known = await open();
    return known === undefined ? Number.NaN : of(known);
  };
  addGauge(registry, "providers_tasks_due", "Tasks that are due and not taken, counted to 10,000.", () =>
    read((known) => known.due),
  );
  addGauge(registry, "providers_tasks_oldest_due_age_seconds", "For how long the oldest of those has been due.", () =>
    read((known) => known.oldestDueAgeMs / 1_000),
  );
  addGauge(
    registry,
    "providers_oldest_confirmation_age_seconds",
    "How long the oldest payment that a provider has confirmed waits for its station.",
    () => read((known) => known.oldestConfirmationAgeMs / 1_000),
  );
}

/** Counts a new issue. `outcome` is its kind whenever there is an id. */
export function countIssue(
  { issues }: Pick<ProviderMetrics, "issues">,
  outcome: string,
  issueId: number | undefined,
): void {
  if (issueId !== undefined) issues.add({ kind: outcome });
}
