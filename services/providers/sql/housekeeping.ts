/** Removing what has outlived its retention, a batch at a time. Each returns how many rows it removed. */
import type { Database } from "../../db/pool.ts";

export interface Removal {
  readonly olderThanDays: number;
  readonly rows: number;
}

export async function deleteOldCallbacks(sql: Database, { olderThanDays, rows }: Removal): Promise<number> {
  const removed = await sql`
    delete from provider_callbacks where callback_id in (
      select callback_id from provider_callbacks
      where received_at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return removed.count;
}

export async function deleteOldVariants(sql: Database, { olderThanDays, rows }: Removal): Promise<number> {
  const removed = await sql`
    delete from provider_callback_variants where (callback_id, body_hash) in (
      select callback_id, body_hash from provider_callback_variants
      where received_at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return removed.count;
}

export async function deleteOldTasks(sql: Database, { olderThanDays, rows }: Removal): Promise<number> {
  const removed = await sql`
    delete from provider_tasks where (intent_id, kind) in (
      select intent_id, kind from provider_tasks
      where done_at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return removed.count;
}

export async function deleteOldWithdrawals(sql: Database, { olderThanDays, rows }: Removal): Promise<number> {
  const removed = await sql`
    delete from provider_withdrawals where intent_id in (
      select intent_id from provider_withdrawals
      where asked_at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return removed.count;
}

/** Also those beyond the newest `keep`, however young they are. */
export async function deleteOldRefusals(
  sql: Database,
  { olderThanDays, rows, keep }: Removal & { readonly keep: number },
): Promise<number> {
  const removed = await sql`
    delete from provider_callback_refusals where refusal_id in (
      select refusal_id from provider_callback_refusals
      where at < now() - make_interval(days => ${olderThanDays})
        or refusal_id <= (select max(refusal_id) from provider_callback_refusals) - ${keep}::bigint
      order by refusal_id limit ${rows})`;
  return removed.count;
}
