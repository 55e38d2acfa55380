/** The metrics of the webhook signer. */
import type { Registry } from "prom-client";
import { ATTEMPT_ERRORS } from "../bus/messages/webhook-deliveries.ts";
import { addCount, addDuration, addGauge, type Count, type Duration } from "../runtime/metrics.ts";
import type { Sample } from "../runtime/repeat.ts";
import type { DueSummary } from "./sql/owners.ts";

export interface SignerMetrics {
  readonly events: Count<never>;
  readonly deliveries: Count<never>;
  /** By outcome: `delivered`, or why not. */
  readonly attempts: Count<"outcome">;
  readonly attemptSeconds: Duration<"outcome">;
  /** From when a delivery was due to when it was sent. */
  readonly startLagSeconds: Duration<never>;
}

export function addSignerMetrics(
  metrics: Registry | undefined,
  facts: { readonly owners: () => number; readonly due: Sample<DueSummary> },
): SignerMetrics {
  addGauge(metrics, "webhook_owners_held", "Owners that this process sends for.", facts.owners);
  const read = async (of: (known: DueSummary) => number): Promise<number> => {
    const known = await facts.due();
    return known === undefined ? Number.NaN : of(known);
  };
  addGauge(metrics, "webhook_due_deliveries", "Deliveries that are due now, counted to 10,000.", () =>
    read((due) => due.rows),
  );
  addGauge(metrics, "webhook_oldest_due_age_seconds", "How long the oldest of those has been due.", () =>
    read((due) => due.oldestAgeMs / 1_000),
  );
  return {
    events: addCount(metrics, { name: "webhook_events_total", help: "Events turned into deliveries." }),
    deliveries: addCount(metrics, { name: "webhook_deliveries_total", help: "Deliveries written." }),
    attempts: addCount(metrics, {
      name: "webhook_attempts_total",
      help: "Attempts to deliver, by outcome.",
      labels: { outcome: ["delivered", ...ATTEMPT_ERRORS] },
    }),
    attemptSeconds: addDuration(metrics, {
      name: "webhook_attempt_seconds",
      help: "How long attempts took.",
      labels: { outcome: ["delivered", ...ATTEMPT_ERRORS] },
    }),
    startLagSeconds: addDuration(metrics, {
      name: "webhook_start_lag_seconds",
      help: "From when a delivery was due to when it was sent.",
    }),
  };
}
