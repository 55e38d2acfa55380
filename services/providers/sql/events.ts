/** The trail of configs and issues: who did what. */
import type { Caller } from "../../bus/messages/caller.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";
import type { Attribution, IssueRow } from "./issues.ts";
import type { Json } from "./json.ts";

export interface ProviderEvent {
  readonly caller: Caller;
  readonly action: string;
  readonly subject: { readonly kind: "provider_config" | "provider_issue"; readonly id: number };
  /** What changed and why; never a secret (I9). */
  readonly data?: Json;
}

/** Written in the transaction of the change itself, so that neither is without the other. */
export async function recordEvent(sql: Transaction, event: ProviderEvent): Promise<void> {
  const { caller, action, subject } = event;
  await sql`
    insert into provider_events (organization_id, actor_role, actor_id, actor_name, action, subject_kind, subject_id, data)
    values (${caller.organizationId}, ${caller.role}, ${caller.userId}, ${caller.name}, ${action}, ${subject.kind},
      ${subject.id}, ${sql.json(event.data ?? {})})`;
}

/** An attribution is told when the seam has settled it, in the name of whoever asked for it. */
export async function recordAttribution(
  sql: Transaction,
  issue: Pick<IssueRow, "issue_id" | "organization_id" | "kind" | "transaction_id">,
  { by, reason, orderId, intentId }: Attribution,
): Promise<void> {
  const data = {
    kind: issue.kind,
    reason,
    order_id: orderId,
    intent_id: intentId,
    transaction_id: issue.transaction_id,
  };
  await sql`
    insert into provider_events (organization_id, actor_role, actor_id, actor_name, action, subject_kind, subject_id, data)
    values (${issue.organization_id}, ${by.role}, ${by.userId}, ${by.name}, 'provider_issue_attributed',
      'provider_issue', ${issue.issue_id}, ${sql.json(data)})`;
}

export interface ProviderEventRow {
  readonly event_id: number;
  readonly at: Date;
  readonly actor_role: string;
  readonly actor_id: number;
  readonly actor_name: string;
  readonly action: string;
  readonly subject_kind: "provider_config" | "provider_issue";
  readonly subject_id: number;
  readonly data: Record<string, unknown>;
}

/** The organization's events after one of them, oldest first. */
export async function selectEvents(
  sql: Queryable,
  page: { readonly organizationId: number; readonly sinceId: number; readonly limit: number },
): Promise<ProviderEventRow[]> {
  return sql<ProviderEventRow[]>`
    select * from provider_events
    where organization_id = ${page.organizationId} and event_id > ${page.sinceId}
    order by event_id limit ${page.limit}`;
}
