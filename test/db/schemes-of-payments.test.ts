/** Migration 0023: each payment of an older program gets the scheme that its config had when it was asked for. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrate } from "../../services/db/migrate.ts";
import type { Database } from "../../services/db/pool.ts";
import { createOlderDatabase, type OlderDatabase } from "../support/older-database.ts";

const PAYMENTS = 300;
const ISSUES = 200;

let older: OlderDatabase;
let sql: Database;

beforeAll(async () => {
  older = await createOlderDatabase("0023");
  ({ sql } = older);
  await older.migrateAsBefore();
  await older.addStation("EUR");
});
afterAll(() => older.stop());

const settings = (guid: string) => ({ merchant_account: { guid, merchant_id: "MU" } });
const at = (minute: number): Date => new Date(Date.UTC(2026, 10, 1, 12, minute));

async function addConfig(guid: string): Promise<number> {
  const [row] = await sql<[{ config_id: number }]>`
    insert into provider_configs (organization_id, filial_id, kind, mode, name, status, settings)
    values (1, 1, 'emvco_generic', 'live', 'Old', 'disabled', ${sql.json(settings(guid))}) returning config_id`;
  return row.config_id;
}

const addChange = (configId: number, from: string, minute: number) => sql`
  insert into provider_events (organization_id, at, actor_role, actor_id, actor_name, action, subject_kind, subject_id, data)
  values (1, ${at(minute)}, 'owner', 1, 'Olga', 'provider_config_changed', 'provider_config', ${configId},
    ${sql.json({ settings: { from: settings(from), to: {} } })})`;

let payments = 0;
async function addPayment(configId: number, minute: number): Promise<number> {
  payments += 1;
  await sql`
    insert into provider_payments (intent_id, config_id, organization_id, station_id, order_display_number, reference,
      account, amount_minor, currency, expires_at, asked_until, created_at)
    values (${payments}, ${configId}, 1, 1, 1, ${`R${payments}`}, 'MU', 1250, 'EUR', now(), now(), ${at(minute)})`;
  return payments;
}

const timesRead = async (): Promise<number> => {
  const [row] = await sql`select seq_scan::int as times from pg_stat_user_tables where relname = 'provider_events'`;
  return row?.["times"] as number;
};

test("it is what the first change since says, and the trail is not read once for each payment", async () => {
  const [steady, changed, overtaken] = [await addConfig("One"), await addConfig("now"), await addConfig("now")];
  await addChange(changed, "first", 10);
  await addChange(changed, "second", 20);
  // The one that was begun first has waited for the other to end.
  await addChange(overtaken, "first", 20);
  await addChange(overtaken, "second", 10);
  const asked: [configId: number, minute: number, scheme: string][] = [
    [steady, 5, "one"],
    [changed, 5, "first"],
    [changed, 15, "second"],
    [changed, 25, "now"],
    [overtaken, 5, "first"],
    [overtaken, 15, "first"],
    [overtaken, 25, "now"],
  ];
  const expected: [intentId: number, scheme: string][] = [];
  for (const [configId, minute, scheme] of asked) expected.push([await addPayment(configId, minute), scheme]);
  for (let more = 0; more < PAYMENTS; more += 1) await addPayment(steady, 0);
  await sql`
    insert into provider_events (organization_id, actor_role, actor_id, actor_name, action, subject_kind, subject_id)
    select 1, 'owner', 1, 'Olga', 'provider_issue_closed', 'provider_issue', id from generate_series(1, ${ISSUES}) as id`;
  const readBefore = await timesRead();

  await migrate({ databaseUrl: older.url, log: () => undefined });

  const schemes = await sql<{ intent_id: number; account_scheme: string }[]>`
    select intent_id, account_scheme from provider_payments order by intent_id limit ${asked.length}`;
  expect(schemes.map((row) => [row.intent_id, row.account_scheme])).toEqual(expected);
  expect((await timesRead()) - readBefore).toBeLessThan(10);
});
