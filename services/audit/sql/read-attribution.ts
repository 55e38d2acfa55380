/** Reading how a provider's money came to pay an order by an operator's word: no station ever had an intent for it. */
import type { ActorKind } from "../../bus/messages/caller.ts";
import type { Database } from "../../db/pool.ts";
import { readStoredText } from "../../db/stored-text.ts";

export interface AttributionFacts {
  readonly stationId: number;
  readonly orderId: number;
  readonly orderDisplayNumber: number;
  readonly transactionId: number;
  readonly amountMinor: string;
  readonly currency: string;
  readonly reference: string;
  readonly settledAtMs: number;
  readonly issueId: number;
  readonly issueKind: string;
  readonly configId: number;
  /** The collection that the money had been meant for, where that is known. */
  readonly meantForIntentId: number | null;
  readonly openedAtMs: number;
  readonly attributedAtMs: number;
  readonly by: { readonly kind: ActorKind; readonly id: number; readonly name: string };
  readonly reason: string;
}

interface AttributionRow {
  readonly station_id: number;
  readonly order_id: number;
  readonly display_number: number;
  readonly transaction_id: number;
  readonly amount_minor: string;
  readonly currency: string;
  readonly reference: string;
  readonly settled_at_ms: number;
  readonly issue_id: number;
  readonly kind: string;
  readonly config_id: number;
  readonly intent_id: number | null;
  readonly opened_at_ms: number;
  readonly attributed_at_ms: number;
  readonly actor_role: ActorKind;
  readonly actor_id: number;
  readonly actor_name: string;
  readonly reason: string | null;
}

/** The attribution whose transaction has this intent id; undefined when there is none in the organization. */
export async function findAttribution(
  database: Database,
  key: { readonly organizationId: number; readonly intentId: number },
): Promise<AttributionFacts | undefined> {
  const [row] = await database<AttributionRow[]>`
    select t.station_id, t.order_id, o.display_number, t.transaction_id, t.amount_minor::text as amount_minor,
           t.currency, t.reference, floor(extract(epoch from t.settled_at) * 1000)::bigint as settled_at_ms,
           i.issue_id, i.kind, i.config_id, i.intent_id, i.reason,
           floor(extract(epoch from i.opened_at) * 1000)::bigint as opened_at_ms,
           floor(extract(epoch from e.at) * 1000)::bigint as attributed_at_ms, e.actor_role, e.actor_id, e.actor_name
    from transactions t
    join orders o on o.order_id = t.order_id
    join provider_issues i
      on i.organization_id = t.organization_id and i.transaction_id = t.transaction_id and i.status = 'attributed'
    join provider_events e
      on e.organization_id = i.organization_id and e.subject_kind = 'provider_issue' and e.subject_id = i.issue_id
      and e.action = 'provider_issue_attributed'
    where t.organization_id = ${key.organizationId} and t.intent_id = ${key.intentId}
    order by e.event_id limit 1`;
  if (row === undefined) return undefined;
  return {
    stationId: row.station_id,
    orderId: row.order_id,
    orderDisplayNumber: row.display_number,
    transactionId: row.transaction_id,
    amountMinor: row.amount_minor,
    currency: row.currency,
    reference: readStoredText(row.reference),
    settledAtMs: row.settled_at_ms,
    issueId: row.issue_id,
    issueKind: row.kind,
    configId: row.config_id,
    meantForIntentId: row.intent_id,
    openedAtMs: row.opened_at_ms,
    attributedAtMs: row.attributed_at_ms,
    by: { kind: row.actor_role, id: row.actor_id, name: row.actor_name },
    reason: row.reason ?? "",
  };
}

/** The provider's money that a payment did not take, and that has paid an order by an operator's word. */
export interface AttributedMoney {
  readonly issueId: number;
  readonly orderId: number;
  readonly orderDisplayNumber: number;
  readonly transactionId: number;
  /** The transaction's own intent id, under which the whole attribution is told. */
  readonly attributionIntentId: number;
  readonly amountMinor: string;
  readonly currency: string;
  readonly reference: string;
  readonly attributedAtMs: number;
  readonly by: AttributionFacts["by"];
  readonly reason: string;
}

/** Of the money that was meant for this intent; oldest first, at most `limit`. */
export async function selectAttributedMoney(
  database: Database,
  key: { readonly organizationId: number; readonly intentId: number; readonly limit: number },
): Promise<AttributedMoney[]> {
  const rows = await database<(Omit<AttributionRow, "station_id"> & { readonly attribution_intent_id: number })[]>`
    select i.issue_id, t.order_id, o.display_number, t.transaction_id, t.intent_id as attribution_intent_id,
           t.amount_minor::text as amount_minor, t.currency, t.reference, i.reason,
           floor(extract(epoch from e.at) * 1000)::bigint as attributed_at_ms, e.actor_role, e.actor_id, e.actor_name
    from provider_issues i
    join transactions t on t.organization_id = i.organization_id and t.transaction_id = i.transaction_id
    join orders o on o.order_id = t.order_id
    join lateral (
      select at, actor_role, actor_id, actor_name from provider_events
      where organization_id = i.organization_id and subject_kind = 'provider_issue' and subject_id = i.issue_id
        and action = 'provider_issue_attributed'
      order by event_id limit 1) e on true
    where i.organization_id = ${key.organizationId} and i.intent_id = ${key.intentId} and i.status = 'attributed'
      and t.intent_id <> i.intent_id
    order by e.at, i.issue_id limit ${key.limit}`;
  return rows.map((row) => ({
    issueId: row.issue_id,
    orderId: row.order_id,
    orderDisplayNumber: row.display_number,
    transactionId: row.transaction_id,
    attributionIntentId: row.attribution_intent_id,
    amountMinor: row.amount_minor,
    currency: row.currency,
    reference: readStoredText(row.reference),
    attributedAtMs: row.attributed_at_ms,
    by: { kind: row.actor_role, id: row.actor_id, name: row.actor_name },
    reason: row.reason ?? "",
  }));
}
