/** The metrics of the audit copy. */
import type { Registry } from "prom-client";
import type { StationLogs } from "../bus/streams.ts";
import { addCount, addGauges, type Count } from "../runtime/metrics.ts";
import type { Sample } from "../runtime/repeat.ts";
import type { CopyLag } from "./copy/progress.ts";

export interface CopierMetrics {
  readonly commits: Count<never>;
  readonly gaps: Count<never>;
  readonly interruptions: Count<never>;
}

export function addCopierMetrics(registry: Registry | undefined): CopierMetrics {
  return {
    commits: addCount(registry, { name: "audit_copied_commits_total", help: "Commits that this process copied." }),
    gaps: addCount(registry, {
      name: "audit_gaps_total",
      help: "Runs of versions that were missing in the log when it was copied.",
    }),
    interruptions: addCount(registry, {
      name: "audit_copy_interruptions_total",
      help: "Failures after which the copier had to start again.",
    }),
  };
}

/** Read at each scrape; NaN while the database or the stream does not answer. */
export function addLagMetrics(
  registry: Registry | undefined,
  { all }: StationLogs,
  lags: Sample<readonly CopyLag[]>,
): void {
  const add = (name: string, help: string, of: (known: CopyLag) => number): void =>
    addGauges(registry, { name, help, labels: ["log"] }, async () => {
      const known = await lags();
      return all.map(({ name: log }) => {
        const lag = known?.find((each) => each.log === log);
        return [{ log }, lag === undefined ? Number.NaN : of(lag)] as const;
      });
    });
  add("audit_copy_position", "Sequence of the log up to which all is copied.", ({ position }) => position);
  add("audit_copy_behind_commits", "Messages of the log that are not copied yet.", ({ behind }) => behind);
  add("audit_copy_lag_seconds", "Age of the oldest commit that is not copied.", ({ lateMs }) => lateMs / 1_000);
}
