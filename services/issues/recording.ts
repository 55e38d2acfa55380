/**
 * Records each step of an issue in the audit log, and announces it in an event on the bus. A transaction does both after its
 * last row lock, the audit log first.
 */
import type { ISSUE_EVENT_TYPES, IssueEvent } from "../bus/messages/issues.ts";
import { insertOutbox, organizationKey } from "../db/outbox.ts";
import type { Json, Transaction } from "../db/pool.ts";
import { type ProviderActor, recordEvents, SYSTEM } from "../db/provider-audit-log.ts";
import { ISSUE_LIMITS } from "./limits.ts";
import type { IssueRow } from "./sql/issues.ts";

/** The step of a person or of the system. The audit log has the action `issue_<word>`. */
type IssueAction =
  | "assigned"
  | "unassigned"
  | "commented"
  | "attribution_proposed"
  | "attribution_rejected"
  | "attribution_withdrawn"
  | "attribution_ended"
  | "attributed"
  | "closed"
  | "closing_undone"
  | "ended";

type Stepping = Pick<IssueRow, "issue_id" | "organization_id">;

export async function recordSteps(
  tx: Transaction,
  steps: readonly {
    readonly issue: Stepping;
    readonly actor: ProviderActor;
    readonly action: IssueAction;
    readonly data: Readonly<Record<string, Json>>;
  }[],
): Promise<void> {
  await recordEvents(
    tx,
    steps.map(({ issue, actor, action, data }) => ({
      organizationId: issue.organization_id,
      actor,
      action: `issue_${action}`,
      subject: { kind: "issue", id: issue.issue_id },
      data,
    })),
  );
}

/** The state before a decision, so that the audit log shows what it has changed. */
export function priorOf({ status, assignee_id }: Pick<IssueRow, "status" | "assignee_id">): Record<string, Json> {
  return { status, assignee_id };
}

/** Announces issues: one event or more for each organization. Call it last in the transaction. */
export async function announceIssues(
  tx: Transaction,
  type: (typeof ISSUE_EVENT_TYPES)[number],
  changed: readonly Stepping[],
): Promise<void> {
  const byOrganization = [...Map.groupBy(changed, (issue) => issue.organization_id)];
  for (const [organizationId, own] of byOrganization.toSorted(([one], [other]) => one - other)) {
    const issueIds = own.map((issue) => issue.issue_id).toSorted((one, other) => one - other);
    for (let from = 0; from < issueIds.length; from += ISSUE_LIMITS.issuesPerEvent) {
      const ids = issueIds.slice(from, from + ISSUE_LIMITS.issuesPerEvent);
      const issues = await tx<IssueEvent["issues"]>`
        select issue_id as "issueId", kind, status, account_key as "accountKey", station_id as "stationId",
          supersedes_id as "supersedesId"
        from issues where issue_id = any(${ids}::bigint[]) order by issue_id`;
      await insertOutbox(tx, {
        key: organizationKey(organizationId),
        kind: "issue_event",
        event: { type, organizationId, issues: [...issues] },
      });
    }
  }
}

/** Records and announces issues that have ended without a person (`endIssues`). */
export async function recordEnded(
  tx: Transaction,
  ended: readonly (Stepping & { readonly kind: string })[],
  reason: string,
): Promise<void> {
  const steps = ended.map((issue) => ({
    issue,
    actor: SYSTEM,
    action: "ended" as const,
    data: { kind: issue.kind, reason },
  }));
  await recordSteps(tx, steps);
  await announceIssues(tx, "issues_closed", ended);
}
