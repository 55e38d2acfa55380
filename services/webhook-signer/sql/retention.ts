/** What the retention job deletes, a bounded number of rows at a time. Each returns how many. */
import type { Database } from "../../db/pool.ts";
import { endedAs } from "./deliveries.ts";

/** Deliveries that are done with, and with them their attempts. Returns how many. */
export async function deleteOldDeliveries(
  sql: Database,
  { olderThanDays, rows }: { readonly olderThanDays: number; readonly rows: number },
): Promise<number> {
  const result = await sql`
    with old as (
      delete from webhook_deliveries where delivery_id in (
        select delivery_id from webhook_deliveries
        where status <> 'pending' and created_at < now() - ${olderThanDays}::float8 * interval '1 day'
        limit ${rows})
      returning delivery_id
    ), attempts as (
      delete from webhook_attempts a using old where a.delivery_id = old.delivery_id
    )
    select from old`;
  return result.count;
}

/** What has waited for a paused endpoint, or one of a suspended consumer, for as long as what is done with is kept. Returns how many. */
export async function endForgottenDeliveries(
  sql: Database,
  { olderThanDays, rows }: { readonly olderThanDays: number; readonly rows: number },
): Promise<number> {
  const result = await sql`
    update webhook_deliveries set ${endedAs(sql, "failed")}
    where delivery_id in (
      select d.delivery_id from webhook_endpoints e join robotics_consumers c using (consumer_id) cross join lateral (
        select delivery_id from webhook_deliveries
        where endpoint_id = e.endpoint_id and status = 'pending'
          and due_at < now() - ${olderThanDays}::float8 * interval '1 day'
        order by due_at limit ${rows} for no key update skip locked
      ) d
      where (e.status = 'paused' or c.status = 'suspended') and e.deleted_at is null limit ${rows})`;
  return result.count;
}

/** What says that an event was taken; longer than the outbox keeps it, or it would be taken again. */
export async function deleteOldEvents(
  sql: Database,
  { olderThanDays, rows }: { readonly olderThanDays: number; readonly rows: number },
): Promise<number> {
  const result = await sql`
    delete from webhook_events where event_id in (
      select event_id from webhook_events e
      where taken_at < now() - ${olderThanDays}::float8 * interval '1 day'
        and not exists (select from outbox where outbox_id = e.event_id)
      limit ${rows})`;
  return result.count;
}
