/** Runs of the conformance suite that an owner starts at a sandbox, and their results. */
import { requirePermission } from "../bus/messages/caller.ts";
import type * as messages from "../bus/messages/conformance-runs.ts";
import { firstPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { insertOutboxRows, sessionKey } from "../db/outbox.ts";
import { flush, type RegistryHandler } from "./deps.ts";
import { ownerEvent } from "./events.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import { endOneSession, logOut, mintSession } from "./sessions.ts";
import * as sql from "./sql/conformance-runs.ts";
import { recordEvent } from "./sql/events.ts";
import { lockSandbox } from "./sql/sandboxes.ts";
import { lockUsers } from "./sql/users.ts";

const { conformanceRun: LIMITS } = REGISTRY_LIMITS;

function runMessage(row: sql.ConformanceRunRow): messages.ConformanceRun {
  return {
    runId: row.run_id,
    sandboxId: row.sandbox_id,
    userId: row.user_id,
    status: row.status,
    startedAtMs: row.started_at.getTime(),
    endedAtMs: row.ended_at?.getTime() ?? null,
    passed: row.passed,
    failed: row.failed,
    notRun: row.not_run,
    leftBehind: row.left_behind,
    suiteVersion: row.suite_version,
    contractSha256: row.contract_sha256,
    problem: row.problem,
  };
}

/**
 * The run acts with a separate session and ends it. `onEnd` ends that session too, because a run that is killed cannot.
 */
export const startConformanceRun: RegistryHandler<typeof messages.startConformanceRun> = async (deps, request) => {
  const { caller, sandboxId } = request;
  const { organizationId, userId } = requirePermission(caller, "organization.manage");
  if (!deps.conformance.hasPlace) {
    const detail = `This process runs the suite ${LIMITS.atOnce} times already; start this run in a minute.`;
    throw new RefusedError({ code: "busy", detail, retryAfterMs: LIMITS.retryMs });
  }
  const { row, token, interrupted } = await deps.sql.begin(async (tx) => {
    existing(await lockSandbox(tx, organizationId, sandboxId), "sandbox_id");
    const [user] = await lockUsers(tx, organizationId, [userId]);
    if (user?.status !== "active") throw new RefusedError({ code: "permission_denied" });
    const gone = await sql.endInterruptedRuns(tx, sandboxId);
    if (await sql.isRunning(tx, sandboxId)) {
      throw new RefusedError({
        code: "conflict",
        detail: "Another run is active at this sandbox; wait for it, or end it.",
      });
    }
    const session = await mintSession(tx, user, LIMITS.sessionLifetimeMs);
    const { sessionId } = session.entry;
    const { leaseMs } = LIMITS;
    const created = await sql.startConformanceRun(tx, { organizationId, sandboxId, userId, sessionId, leaseMs });
    await sql.deleteOlderRuns(tx, organizationId, LIMITS.kept);
    const subject = { kind: "session", id: sessionId } as const;
    await recordEvent(tx, ownerEvent(session.entry, "session_opened", subject, { conformance_run_id: created.run_id }));
    await insertOutboxRows(tx, [session.put]);
    return { row: created, token: session.token, interrupted: gone };
  });
  for (const run of interrupted) await endOneSession(deps, { caller, userId: run.user_id, sessionId: run.session_id });
  await flush(deps, sessionKey(userId));
  const onEnd = async (): Promise<void> => void (await logOut(deps, { caller, sessionId: row.session_id }));
  deps.conformance.start({ runId: row.run_id, sandboxId, token, onEnd });
  return { run: runMessage(row) };
};

export const listConformanceRuns: RegistryHandler<typeof messages.listConformanceRuns> = async (deps, request) => {
  const { caller, beforeId, limit } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const rows = await sql.listConformanceRuns(deps.sql, { organizationId, beforeId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(runMessage), limit);
  return { runs: page, hasMore };
};

export const getConformanceRun: RegistryHandler<typeof messages.getConformanceRun> = async (deps, request) => {
  const { caller, runId } = request;
  requirePermission(caller, "organization.manage");
  const row = existing(await sql.getConformanceRun(deps.sql, caller.organizationId, runId));
  return { run: runMessage(row), checks: row.checks };
};

export const endConformanceRun: RegistryHandler<typeof messages.endConformanceRun> = async (deps, request) => {
  const { caller, runId } = request;
  requirePermission(caller, "organization.manage");
  await sql.endConformanceRun(deps.sql, caller.organizationId, runId);
  return { run: runMessage(existing(await sql.getConformanceRun(deps.sql, caller.organizationId, runId))) };
};
