/** The metrics of the robotics service. */
import type { Registry } from "prom-client";
import { SERVING_TASK_STATUSES } from "../../machines/serving-task.ts";
import { addCount, addGauge, type Count } from "../runtime/metrics.ts";
import type { Sample } from "../runtime/repeat.ts";

export interface RoboticsMetrics {
  /** Counts tasks by the status that they have reached. */
  readonly taskChanges: Count<"status">;
  /** Counts checks of credentials by result: `known` or `unknown`. */
  readonly credentialChecks: Count<"result">;
}

export function addRoboticsMetrics(
  metrics: Registry | undefined,
  facts: { readonly oldestDueAgeMs: Sample<number> },
): RoboticsMetrics {
  addGauge(
    metrics,
    "robotics_oldest_due_offer_age_seconds",
    "How long the oldest offer past its deadline has waited to expire; 0 when there is none.",
    async () => ((await facts.oldestDueAgeMs()) ?? Number.NaN) / 1_000,
  );
  return {
    taskChanges: addCount(metrics, {
      name: "robotics_task_changes_total",
      help: "Serving tasks by the status that they have come to.",
      labels: { status: SERVING_TASK_STATUSES },
    }),
    credentialChecks: addCount(metrics, {
      name: "robotics_credential_checks_total",
      help: "Checks of consumers' credentials, by result.",
      labels: { result: ["known", "unknown"] },
    }),
  };
}
