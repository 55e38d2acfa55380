/** Metrics of the issues that wait for a person. */
import type { Registry } from "prom-client";
import { ISSUE_KINDS } from "../bus/messages/issues.ts";
import { addGauge, addGauges } from "../runtime/metrics.ts";
import type { Sample } from "../runtime/repeat.ts";
import type { UnresolvedIssues } from "./sql/issues.ts";

/** Read at each scrape; without values while the database does not answer. */
export function addIssueGauges(registry: Registry | undefined, unresolved: Sample<UnresolvedIssues>): void {
  addGauge(
    registry,
    "issues_oldest_unresolved_age_seconds",
    "For how long the oldest open issue has been open.",
    async () => {
      const known = await unresolved();
      return known === undefined ? Number.NaN : known.oldestAgeMs / 1_000;
    },
  );
  addGauges(
    registry,
    { name: "issues_unresolved", help: "Issues that wait for a person, by kind.", labels: ["kind"] },
    async () => {
      const known = await unresolved();
      const counts = new Map(known?.byKind.map(({ kind, count }) => [kind, count]));
      return ISSUE_KINDS.map((kind) => [{ kind }, known === undefined ? Number.NaN : (counts.get(kind) ?? 0)] as const);
    },
  );
}
