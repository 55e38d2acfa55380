/** Migration 0014 names the money that older versions of this program have settled, so that it pays nothing again. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrate } from "../../services/db/migrate.ts";
import { type Database } from "../../services/db/pool.ts";
import { createOlderDatabase, type OlderDatabase } from "../support/older-database.ts";

let older: OlderDatabase;
let sql: Database;
let url: string;

beforeAll(async () => {
  older = await createOlderDatabase("0014");
  ({ sql, url } = older);
});
afterAll(() => older.stop());

test("a confirmed money, an attributed one and one that has paid twice have their names; cash has none", async () => {
  await older.migrateAsBefore();
  await older.addStation("EUR");
  await sql`
    insert into orders (organization_id, station_id, display_number, currency, total_minor, opened_by)
    select 1, 1, number, 'EUR', 1250, 2 from generate_series(1, 5) as number`;
  await sql`
    insert into provider_configs (organization_id, filial_id, kind, mode, name, settings)
    values (1, 1, 'emvco_generic', 'live', 'Acquirer', '{}')`;
  const settled = [
    [1, "dynamic_qr", "T-1"],
    [2, "dynamic_qr", "T-2"],
    [3, "dynamic_qr", "T-1"],
    [4, "cash", ""],
  ] as const;
  for (const [id, route, reference] of settled)
    await sql`select settle_intent(${id}, 'attestation', 1, ${id}, ${route}, 1250, 'EUR', ${reference}, 2)`;
  await sql`
    insert into provider_payments (intent_id, config_id, organization_id, station_id, order_display_number, reference,
      account, amount_minor, currency, expires_at, asked_until, provider_reference, paid_reference, paid_at)
    values (1, 1, 1, 1, 1, 'OURS', 'M-1', 1250, 'EUR', now(), now(), 'T-1', 'T-1', now())`;
  await sql`
    insert into provider_issues (organization_id, config_id, kind, status, money_key, provider_reference, evidence,
      resolved_at, transaction_id)
    values (1, 1, 'unmatched_money', 'attributed', 'money:T-2', 'T-2', '{}', now(), 2),
      (1, 1, 'account_mismatch', 'attributed', 'money:T-1', 'T-1', '{}', now(), 3)`;

  await migrate({ databaseUrl: url, log: () => undefined });

  const named = await sql`select intent_id, money_key from transactions order by intent_id`;
  expect(named).toEqual([
    { intent_id: 1, money_key: "provider:1:money:T-1" },
    { intent_id: 2, money_key: "provider:1:money:T-2" },
    { intent_id: 3, money_key: null },
    { intent_id: 4, money_key: null },
  ]);
  const [again] = await sql`
    select refusal from settle_intent(9, 'attestation', 1, 5, 'dynamic_qr', 1250, 'EUR', 'T-2', 2, 'provider:1:money:T-2')`;
  expect(again).toEqual({ refusal: "money_already_used" });
  await expect(sql`update transactions set money_key = null`).rejects.toThrow("never change");
});
