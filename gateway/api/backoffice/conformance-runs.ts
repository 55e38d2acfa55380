/** Runs of the conformance suite at a sandbox (contract, "Rules" 10): the owner starts one, follows it, and reads its checks. */
import { z } from "zod";
import * as messages from "../../../services/bus/messages/conformance-runs.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreBefore, pageBeforeQuery } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import { idSchema, optionalTimestamp, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";

const statusSchema = z.enum(messages.CONFORMANCE_RUN_STATUSES).meta({
  id: "ConformanceRunStatus",
  description:
    "`passed`: every check passed. `failed`: at least one check did not pass. `left_behind`: the run could not clean up all that it created. `could_not_run`: the suite could not run; `problem` gives the reason. `ended`: an owner ended the run. `interrupted`: the process of the run ended before the run did.",
});
export const outcomeSchema = messages.conformanceCheckSchema.shape.outcome.meta({ id: "ConformanceOutcome" });
const countSchema = z.int().min(0);
const runShape = {
  conformance_run_id: idSchema,
  sandbox_id: idSchema,
  started_by: idSchema.meta({ description: "The owner's user id." }),
  status: statusSchema,
  started_at: timestampSchema,
  ended_at: timestampSchema.nullable(),
  passed: countSchema,
  failed: countSchema,
  not_run: countSchema.meta({ description: "Checks that did not run, because a check that they need did not pass." }),
  left_behind: z.array(z.string()).meta({ description: "What the run could not clean up; normally empty." }),
  suite_version: z.string().nullable(),
  contract_sha256: z.string().nullable().meta({ description: "The hash of the contract that the suite checks." }),
  problem: z.string().nullable(),
};
const EXAMPLE = {
  conformance_run_id: 4,
  sandbox_id: 7,
  started_by: 3,
  status: "passed" as const,
  started_at: "2026-11-24T09:00:00.000Z",
  ended_at: "2026-11-24T09:00:54.000Z",
  passed: 83,
  failed: 0,
  not_run: 0,
  left_behind: [],
  suite_version: "0.2.0",
  contract_sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  problem: null,
};
const runSchema = z.object(runShape).meta({ id: "ConformanceRun", examples: [EXAMPLE] });
const checkSchema = messages.conformanceCheckSchema.extend({ outcome: outcomeSchema }).meta({ id: "ConformanceCheck" });
const wholeRunSchema = z.object({ ...runShape, checks: z.array(checkSchema) }).meta({
  id: "ConformanceRunWithChecks",
  examples: [
    {
      ...EXAMPLE,
      checks: [
        {
          id: "enroll.claims_code",
          capability: "enrollment",
          outcome: "passed" as const,
          duration_ms: 31,
          sentences: ["The credential is returned exactly once."],
        },
      ],
    },
  ],
});
const runsSchema = z.object({ conformance_runs: z.array(runSchema), has_more: hasMoreBefore });
const querySchema = z.strictObject(pageBeforeQuery);
const startBodySchema = z
  .strictObject({ sandbox_id: idSchema })
  .meta({ id: "StartConformanceRun", examples: [{ sandbox_id: 7 }] });

function runJson(run: messages.ConformanceRun): z.infer<typeof runSchema> {
  return {
    conformance_run_id: run.runId,
    sandbox_id: run.sandboxId,
    started_by: run.userId,
    status: run.status,
    started_at: toTimestamp(run.startedAtMs),
    ended_at: optionalTimestamp(run.endedAtMs),
    passed: run.passed,
    failed: run.failed,
    not_run: run.notRun,
    left_behind: run.leftBehind,
    suite_version: run.suiteVersion,
    contract_sha256: run.contractSha256,
    problem: run.problem,
  };
}

const startConformanceRun: SessionHandler<z.infer<typeof startBodySchema>> = async ({ caller, deps, body }) => {
  const { run } = await deps.bus.call(messages.startConformanceRun, { caller, sandboxId: body.sandbox_id });
  return created(runJson(run));
};

const listConformanceRuns: SessionHandler<undefined, z.infer<typeof querySchema>> = async (context) => {
  const { before_id: beforeId, limit } = context.query;
  const request = { caller: context.caller, beforeId, limit };
  const { runs, hasMore } = await context.deps.bus.call(messages.listConformanceRuns, request);
  return ok({ conformance_runs: runs.map(runJson), has_more: hasMore });
};

const getConformanceRun: SessionHandler = async ({ caller, deps, id }) => {
  const { run, checks } = await deps.bus.call(messages.getConformanceRun, { caller, runId: id("conformance_run_id") });
  return ok({ ...runJson(run), checks });
};

const endConformanceRun: SessionHandler = async ({ caller, deps, id }) => {
  const { run } = await deps.bus.call(messages.endConformanceRun, { caller, runId: id("conformance_run_id") });
  return ok(runJson(run));
};

const root = "/api/backoffice/v1/conformance-runs/";
const one = `${root}{conformance_run_id}/` as const;

export const conformanceRunRoutes = [
  backofficeRoute({
    method: "GET",
    path: root,
    operation: "listConformanceRuns",
    summary: "List the conformance runs",
    description: "The service keeps the newest 100 runs of the organization.",
    query: querySchema,
    replies: { 200: { description: "The newest first.", schema: runsSchema } },
    handler: listConformanceRuns,
  }),
  backofficeRoute({
    method: "POST",
    path: root,
    operation: "startConformanceRun",
    summary: "Start a conformance run",
    description:
      "Runs the conformance suite against this installation. The suite acts as the owner and as the cashier and both devices of the sandbox, and resets the sandbox before and after. A run takes about a minute; read the run to see its progress. A sandbox has one run at a time.",
    body: startBodySchema,
    replies: { 201: { description: "The run, which has begun.", schema: runSchema } },
    errors: ["not_found", "conflict", "busy"],
    handler: startConformanceRun,
  }),
  backofficeRoute({
    method: "GET",
    path: one,
    operation: "getConformanceRun",
    summary: "Read a conformance run",
    description:
      "The run with the result of each check so far. A failed check shows the expected and the actual result, and a `curl` command.",
    replies: { 200: { description: "The run and its checks.", schema: wholeRunSchema } },
    errors: ["not_found"],
    handler: getConformanceRun,
  }),
  backofficeRoute({
    method: "POST",
    path: `${one}end/`,
    operation: "endConformanceRun",
    summary: "End a conformance run",
    description: "The suite cleans up and ends within seconds. For a run that has ended, the answer is the same.",
    replies: { 200: { description: "The run, as it is now.", schema: runSchema } },
    errors: ["not_found"],
    handler: endConformanceRun,
  }),
];
