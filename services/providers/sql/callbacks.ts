/** Callbacks that were accepted, with their answers, and the record of those that were not. */
import type { Queryable, Transaction } from "../../db/pool.ts";

export interface StoredAnswer {
  readonly status: number;
  readonly body: string;
}

interface CallbackKey {
  readonly configId: number;
  readonly eventKey: string;
}

interface AnswerRow {
  readonly answer_status: number;
  readonly answer_body: string;
}

/** An event that is recorded, with the answer that it got. */
export interface KnownCallback {
  readonly callbackId: number;
  readonly answer: StoredAnswer;
  /** False: the same event id came with another body before. */
  readonly isSameBody: boolean;
}

/** What is recorded of this event, or undefined when it is new. */
export async function findAnswer(
  sql: Queryable,
  key: CallbackKey & { readonly body: Uint8Array },
): Promise<KnownCallback | undefined> {
  const [row] = await sql<(AnswerRow & { callback_id: number; is_same: boolean })[]>`
    select callback_id, answer_status, answer_body, body = ${key.body}::bytea as is_same from provider_callbacks
    where config_id = ${key.configId} and event_key = ${key.eventKey}`;
  if (row === undefined) return undefined;
  const answer = { status: row.answer_status, body: row.answer_body };
  return { callbackId: row.callback_id, answer, isSameBody: row.is_same };
}

interface NewCallback extends CallbackKey {
  readonly eventType: string;
  readonly body: Uint8Array;
  readonly outcome: string;
  readonly intentId: number | null;
}

/** Records the event with its answer; undefined when another transaction has recorded and committed it. */
export async function insertCallback(
  sql: Transaction,
  callback: NewCallback,
): Promise<{ readonly callbackId: number; readonly answer: StoredAnswer } | undefined> {
  const [row] = await sql<(AnswerRow & { callback_id: number })[]>`
    with drawn as (select nextval(pg_get_serial_sequence('provider_callbacks', 'callback_id')) as id)
    insert into provider_callbacks
      (callback_id, config_id, event_key, event_type, intent_id, outcome, body, answer_status, answer_body)
      overriding system value
    select id, ${callback.configId}, ${callback.eventKey}, ${callback.eventType}, ${callback.intentId}::bigint,
      ${callback.outcome}, ${callback.body}, 200, '{"received":true,"callback_id":' || id || '}'
    from drawn
    on conflict (config_id, event_key) do nothing
    returning callback_id, answer_status, answer_body`;
  if (row === undefined) return undefined;
  return { callbackId: row.callback_id, answer: { status: row.answer_status, body: row.answer_body } };
}

/** Stores another body of a known event; beyond `atMost` it is counted only. Locks the event until the transaction ends. */
export async function insertVariant(
  sql: Transaction,
  variant: {
    readonly callbackId: number;
    readonly bodyHash: Uint8Array;
    readonly body: Uint8Array;
    readonly atMost: number;
  },
): Promise<"kept" | "known" | "counted"> {
  const { callbackId, bodyHash, body, atMost } = variant;
  await sql`select 1 from provider_callbacks where callback_id = ${callbackId} for update`;
  const [found] = await sql<[{ kept: number; is_known: boolean }]>`
    select count(*) as kept, coalesce(bool_or(body_hash = ${bodyHash}::bytea), false) as is_known
    from provider_callback_variants where callback_id = ${callbackId}`;
  if (found.is_known) return "known";
  if (found.kept >= atMost) {
    await sql`
      update provider_callbacks set variants_not_kept = variants_not_kept + 1 where callback_id = ${callbackId}`;
    return "counted";
  }
  await sql`
    insert into provider_callback_variants (callback_id, body_hash, body, outcome)
    values (${callbackId}, ${bodyHash}, ${body}, '')`;
  return "kept";
}

export async function setVariantOutcome(
  sql: Transaction,
  variant: { readonly callbackId: number; readonly bodyHash: Uint8Array; readonly outcome: string },
): Promise<void> {
  await sql`
    update provider_callback_variants set outcome = ${variant.outcome}
    where callback_id = ${variant.callbackId} and body_hash = ${variant.bodyHash}`;
}

export async function insertRefusal(
  sql: Queryable,
  refusal: { readonly configId: number; readonly address: string; readonly reason: string },
): Promise<void> {
  await sql`
    insert into provider_callback_refusals (config_id, address, reason)
    values (${refusal.configId}, ${refusal.address}, ${refusal.reason})`;
}

export async function deleteOldCallbacks(sql: Queryable, olderThanDays: number, rows: number): Promise<number> {
  const deleted = await sql`
    delete from provider_callbacks where callback_id in (
      select callback_id from provider_callbacks
      where received_at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return deleted.count;
}

export async function deleteOldVariants(sql: Queryable, olderThanDays: number, rows: number): Promise<number> {
  const deleted = await sql`
    delete from provider_callback_variants where (callback_id, body_hash) in (
      select callback_id, body_hash from provider_callback_variants
      where received_at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return deleted.count;
}

/** Also deletes the refusals beyond the newest `keep`, however young they are. */
export async function deleteOldRefusals(
  sql: Queryable,
  { olderThanDays, keep, rows }: { readonly olderThanDays: number; readonly keep: number; readonly rows: number },
): Promise<number> {
  const deleted = await sql`
    delete from provider_callback_refusals where refusal_id in (
      select refusal_id from provider_callback_refusals
      where at < now() - make_interval(days => ${olderThanDays})
        or refusal_id <= (select max(refusal_id) from provider_callback_refusals) - ${keep}::bigint
      order by refusal_id limit ${rows})`;
  return deleted.count;
}
