/** Migration 0007 renames what older versions of this program wrote, and loses none of it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrate } from "../../services/db/migrate.ts";
import { type Database } from "../../services/db/pool.ts";
import { createOlderDatabase, type OlderDatabase } from "../support/older-database.ts";

let older: OlderDatabase;
let sql: Database;
let url: string;

beforeAll(async () => {
  older = await createOlderDatabase("0007");
  ({ sql, url } = older);
});
afterAll(() => older.stop());

test("orders keep their revisions, answers their orders, events their actors, and the payment seam works", async () => {
  await older.migrateAsBefore();
  await older.addStation("EUR");
  await sql`
    insert into users (organization_id, email, name, role, password_hash)
    values (1, 'a@old.example', 'Ada', 'owner', ''), (1, 'b@old.example', 'Ben', 'cashier', '')`;
  await sql`
    insert into orders (organization_id, station_id, display_number, version, currency, total_minor, opened_by)
    values (1, 1, 1, 4, 'EUR', 1250, 2)`;
  await sql`
    insert into order_openings (user_id, idempotency_key, order_id, opened)
    values (2, 'key', 1, ${sql.json({ orderId: 1, version: 1, lines: [] })})`;
  await sql`
    insert into registry_events (organization_id, actor_kind, actor_id, actor_name, action, subject_kind, subject_id)
    select 1, kind, id, 'name', 'done', 'organization', 1
    from (values ('operator', 0), ('user', 1), ('user', 2), ('device', 9)) as actors (kind, id)`;

  await migrate({ databaseUrl: url, log: () => undefined });

  expect(await sql`select revision from orders`).toMatchObject([{ revision: 4 }]);
  const [opening] = await sql<{ opened: unknown }[]>`select opened from order_openings`;
  expect(opening?.opened).toEqual({ orderId: 1, revision: 1, lines: [] });
  const kinds = await sql<{ actor_kind: string }[]>`select actor_kind from registry_events order by event_id`;
  expect(kinds.map((row) => row.actor_kind)).toEqual(["registry", "owner", "cashier", "device"]);
  const [settled] = await sql`select * from settle_intent(7, 'attestation', 1, 1, 'cash', 1250, 'EUR', '', 2)`;
  expect(settled).toMatchObject({ refusal: null });
  expect(await sql`select status, revision from orders`).toMatchObject([{ status: "paid", revision: 5 }]);
  // As before, a paid order is history.
  await expect(sql`update orders set revision = 6`).rejects.toThrow("never change");
});
