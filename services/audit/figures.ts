/** What the audit service tells about its copy. */
import type { Registry } from "prom-client";
import { addCount, addGauge, type Count } from "../runtime/figures.ts";
import type { Sample } from "../runtime/sample.ts";
import type { CopyLag } from "./copy/copy-lag.ts";

export interface CopierFigures {
  readonly commits: Count<never>;
  readonly gaps: Count<never>;
  readonly interruptions: Count<never>;
}

export function addCopierFigures(metrics: Registry | undefined): CopierFigures {
  return {
    commits: addCount(metrics, { name: "audit_copied_commits_total", help: "Commits that this process copied." }),
    gaps: addCount(metrics, {
      name: "audit_gaps_total",
      help: "Runs of versions that were missing in the log when it was copied.",
    }),
    interruptions: addCount(metrics, {
      name: "audit_copy_interruptions_total",
      help: "Failures after which the copier had to start again.",
    }),
  };
}

/** Read when somebody asks; NaN while the database or the stream does not answer. */
export function addLagFigures(metrics: Registry | undefined, lag: Sample<CopyLag>): void {
  const read = async (of: (known: CopyLag) => number): Promise<number> => {
    const known = await lag();
    return known === undefined ? Number.NaN : of(known);
  };
  addGauge(metrics, "audit_copy_position", "Stream sequence up to which all is copied.", () => read((l) => l.position));
  addGauge(metrics, "audit_copy_behind_commits", "Sequences of the station log behind that.", () =>
    read((l) => l.behind),
  );
  addGauge(metrics, "audit_copy_lag_seconds", "Age of the oldest commit that is not copied.", () =>
    read((l) => l.lateMs / 1_000),
  );
}
