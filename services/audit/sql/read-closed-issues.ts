/** Reading what a person has said of a payment's money that did not fit: issues that were closed as dealt with. */
import type { ActorKind } from "../../bus/messages/caller.ts";
import type { Database } from "../../db/pool.ts";

export interface ClosedIssue {
  readonly issueId: number;
  readonly kind: string;
  readonly closedAtMs: number;
  readonly by: { readonly kind: ActorKind; readonly id: number; readonly name: string };
  readonly reason: string;
}

export interface IssuesOfPayment {
  /** Oldest first. */
  readonly closed: readonly ClosedIssue[];
  /** Beside the closed ones another still waits for a person. */
  readonly hasOpen: boolean;
}

/** Whether the provider has given its money a reference of its own: of all issues, of none, or of some. */
export type ReferencesSaid = "all" | "none" | "some";

/** Of the issues of this intent that are about the money's own reference. */
export async function selectReferencesSaid(
  database: Database,
  key: { readonly organizationId: number; readonly intentId: number },
): Promise<ReferencesSaid> {
  const [row] = await database<{ readonly named: number; readonly unnamed: number }[]>`
    select count(*) filter (where provider_reference <> '')::int as named,
           count(*) filter (where provider_reference = '')::int as unnamed
    from provider_issues
    where organization_id = ${key.organizationId} and intent_id = ${key.intentId} and kind = 'reference_mismatch'`;
  if (row === undefined || row.unnamed === 0) return "all";
  return row.named === 0 ? "none" : "some";
}

/** The issues that name this intent; of the closed ones the newest, at most `limit`. */
export async function selectIssuesOfPayment(
  database: Database,
  key: { readonly organizationId: number; readonly intentId: number; readonly limit: number },
): Promise<IssuesOfPayment> {
  const { organizationId, intentId, limit } = key;
  const rows = await database<
    {
      readonly issue_id: number;
      readonly kind: string;
      readonly closed_at_ms: number;
      readonly actor_role: ActorKind;
      readonly actor_id: number;
      readonly actor_name: string;
      readonly reason: string | null;
      readonly has_open: boolean;
    }[]
  >`
    select i.issue_id, i.kind, i.reason, floor(extract(epoch from e.at) * 1000)::bigint as closed_at_ms,
           e.actor_role, e.actor_id, e.actor_name,
           exists (select from provider_issues o
             where o.intent_id = i.intent_id and o.organization_id = i.organization_id and o.status = 'open') as has_open
    from provider_issues i
    join lateral (
      select at, actor_role, actor_id, actor_name from provider_events
      where organization_id = i.organization_id and subject_kind = 'provider_issue' and subject_id = i.issue_id
        and action = 'provider_issue_closed'
      order by event_id limit 1) e on true
    where i.organization_id = ${organizationId} and i.intent_id = ${intentId} and i.status = 'closed'
    order by e.at desc, i.issue_id desc limit ${limit}`;
  const closed = rows.toReversed().map((row) => ({
    issueId: row.issue_id,
    kind: row.kind,
    closedAtMs: row.closed_at_ms,
    by: { kind: row.actor_role, id: row.actor_id, name: row.actor_name },
    reason: row.reason ?? "",
  }));
  return { closed, hasOpen: rows.some((row) => row.has_open) };
}
