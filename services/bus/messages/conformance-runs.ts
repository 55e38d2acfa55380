/**
 * Runs of the conformance suite at a sandbox, for the back office (contract, "Rules" 10). All operations need
 * `organization.manage`; another organization's id is `not_found`.
 */
import { z } from "zod";
import { once, repeatable } from "../operation.ts";
import { pageBefore } from "../page.ts";
import { callerSchema as caller } from "./caller.ts";

const id = z.int().positive();

/** `ended`: an owner ended the run. `interrupted`: the process of the run ended before the run did. */
export const CONFORMANCE_RUN_STATUSES = [
  "running",
  "passed",
  "failed",
  "left_behind",
  "could_not_run",
  "ended",
  "interrupted",
] as const;

export const conformanceCheckSchema = z.object({
  id: z.string(),
  capability: z.string(),
  outcome: z.enum(["passed", "failed", "not_run"]),
  duration_ms: z.number(),
  /** The sentences of the contract that the check tests. */
  sentences: z.array(z.string()),
  failure: z.object({ what: z.string(), expected: z.string(), actual: z.string(), curl: z.string() }).optional(),
  because: z.string().optional(),
});
export type ConformanceCheck = z.infer<typeof conformanceCheckSchema>;

const conformanceRunSchema = z.object({
  runId: id,
  sandboxId: id,
  userId: id,
  status: z.enum(CONFORMANCE_RUN_STATUSES),
  startedAtMs: z.number(),
  endedAtMs: z.number().nullable(),
  passed: z.int(),
  failed: z.int(),
  notRun: z.int(),
  leftBehind: z.array(z.string()),
  /** Both are null until the suite has reported its result. */
  suiteVersion: z.string().nullable(),
  contractSha256: z.string().nullable(),
  problem: z.string().nullable(),
});
export type ConformanceRun = z.infer<typeof conformanceRunSchema>;

/** Refuses with `conflict` while the sandbox has another run, and with `busy` while the process has its maximum of runs. */
export const startConformanceRun = once(
  "registry.startConformanceRun",
  z.object({ caller, sandboxId: id }),
  z.object({ run: conformanceRunSchema }),
);
export const listConformanceRuns = repeatable(
  "registry.listConformanceRuns",
  z.object({ caller, ...pageBefore }),
  z.object({ runs: z.array(conformanceRunSchema), hasMore: z.boolean() }),
);
export const getConformanceRun = repeatable(
  "registry.getConformanceRun",
  z.object({ caller, runId: id }),
  z.object({ run: conformanceRunSchema, checks: z.array(conformanceCheckSchema) }),
);
/** Requests the end of a run. The suite first cleans up. For a run that has ended, the reply is the same. */
export const endConformanceRun = repeatable(
  "registry.endConformanceRun",
  z.object({ caller, runId: id }),
  z.object({ run: conformanceRunSchema }),
);
