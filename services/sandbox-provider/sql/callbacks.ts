import type { Database, Queryable } from "../../db/pool.ts";

export interface CallbackRow {
  readonly callback_id: number;
  readonly account_id: string;
  readonly callback_url: string;
  readonly body: string;
  readonly attempts: number;
}

export async function insertCallback(
  sql: Queryable,
  callback: { readonly paymentId: string; readonly eventId: string; readonly body: string; readonly dueInMs: number },
): Promise<void> {
  await sql`
    insert into sandbox_provider_callbacks (payment_id, event_id, body, due_at)
    values (${callback.paymentId}, ${callback.eventId}, ${callback.body},
      now() + ${callback.dueInMs}::float8 * interval '1 ms')`;
}

/** Takes up to `limit` due callbacks for `claimMs`; others skip them, and whoever dies with one leaves it due again. */
export async function takeDueCallbacks(database: Database, limit: number, claimMs: number): Promise<CallbackRow[]> {
  return database<CallbackRow[]>`
    with due as (
      select callback_id from sandbox_provider_callbacks where done_at is null and due_at <= now()
      order by due_at, callback_id limit ${limit} for update skip locked
    )
    update sandbox_provider_callbacks c
    set due_at = now() + ${claimMs}::float8 * interval '1 ms', attempts = c.attempts + 1
    from due, sandbox_provider_payments p
    where c.callback_id = due.callback_id and p.payment_id = c.payment_id
    returning c.callback_id, p.account_id, p.callback_url, c.body, c.attempts`;
}

/** Delivered, or given up. */
export async function finishCallback(sql: Queryable, callback: CallbackRow, answer: string): Promise<void> {
  await sql`
    update sandbox_provider_callbacks set done_at = now(), last_answer = ${answer}
    where callback_id = ${callback.callback_id} and attempts = ${callback.attempts}`;
}

export async function postponeCallback(
  sql: Queryable,
  callback: CallbackRow,
  again: { readonly inMs: number; readonly answer: string },
): Promise<void> {
  await sql`
    update sandbox_provider_callbacks
    set due_at = now() + ${again.inMs}::float8 * interval '1 ms', last_answer = ${again.answer}
    where callback_id = ${callback.callback_id} and attempts = ${callback.attempts}`;
}
