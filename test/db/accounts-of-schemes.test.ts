/** Migrations 0020 and 0023 on what an older program has left: what has paid there pays nothing by any config of its account. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrate } from "../../services/db/migrate.ts";
import type { Database } from "../../services/db/pool.ts";
import { createOlderDatabase, type OlderDatabase } from "../support/older-database.ts";

let older: OlderDatabase;
let sql: Database;

beforeAll(async () => {
  older = await createOlderDatabase("0020");
  ({ sql } = older);
});
afterAll(() => older.stop());

const MONEY = "EUR";
const [A, MOVED, THIRD, OTHER_SCHEME, CHANGED_SCHEME] = [1, 2, 3, 4, 5] as const;

const settings = (guid: string, account = "MU") => sql.json({ merchant_account: { guid, merchant_id: account } });

async function settle(config: number, reference: string, orderId: number): Promise<unknown> {
  const [row] = await sql`
    select settled_as, refusal from settle_intent(${orderId}, 'a', 1, ${orderId}, 'dynamic_qr', 1250, ${MONEY}, 'T', 2,
      ${`provider:${config}:money:${reference}`})`;
  return row?.["refusal"] ?? "paid";
}

/** An issue as the older program wrote it, of money that was told with that account. */
async function issueOf(config: number, reference: string, transactionId: number | null = null): Promise<void> {
  await sql`
    insert into provider_issues (organization_id, config_id, kind, money_key, provider_reference, evidence, status,
      resolved_at, transaction_id, account_money_key)
    values (1, ${config}, 'unmatched_money', ${`money:${reference}`}, ${reference}, '{"asserted": {"account": "MU"}}',
      ${transactionId === null ? "open" : "attributed"}, ${transactionId === null ? null : new Date()}, ${transactionId},
      money_of_account(${config}, null, ${`money:${reference}`}))`;
}

test("what has paid or was raised before pays nothing after it, and another scheme's equal numbers do", async () => {
  await older.migrateAsBefore();
  await older.addStation(MONEY);
  await sql`
    insert into orders (organization_id, station_id, display_number, currency, total_minor, opened_by)
    select 1, 1, number, ${MONEY}, 1250, 2 from generate_series(1, 20) as number`;
  for (const guid of ["com.one", "COM.ONE", "com.one", "org.two", "com.one"])
    await sql`
      insert into provider_configs (organization_id, filial_id, kind, mode, name, status, settings)
      values (1, 1, 'emvco_generic', 'live', 'Old', 'disabled', ${settings(guid)})`;
  // Paid at one, told at its sibling; attributed at the sibling; and paid under a scheme that was changed since.
  expect(await settle(A, "V1", 1)).toBe("paid");
  await issueOf(MOVED, "V1");
  expect(await settle(MOVED, "V8", 2)).toBe("paid");
  await issueOf(MOVED, "V8", 2);
  expect(await settle(CHANGED_SCHEME, "H", 3)).toBe("paid");
  await issueOf(THIRD, "OPEN");
  await sql`update provider_configs set settings = ${settings("com.one", "MX")} where config_id = ${MOVED}`;
  await sql`
    insert into provider_events (organization_id, actor_role, actor_id, actor_name, action, subject_kind, subject_id, data)
    values (1, 'owner', 1, 'Olga', 'provider_config_changed', 'provider_config', ${CHANGED_SCHEME},
      ${sql.json({ settings: { from: { merchant_account: { guid: "com.one", merchant_id: "MU" } }, to: {} } })})`;
  await sql`update provider_configs set settings = ${settings("org.two")} where config_id = ${CHANGED_SCHEME}`;

  await migrate({ databaseUrl: older.url, log: () => undefined });

  expect(await settle(MOVED, "V1", 11)).toBe("money_already_used");
  expect(await settle(THIRD, "V1", 12)).toBe("money_already_used");
  expect(await settle(THIRD, "V8", 13)).toBe("money_already_used");
  expect(await settle(A, "H", 14)).toBe("money_already_used");
  expect(await settle(OTHER_SCHEME, "H", 15)).toBe("money_already_used");
  expect(await settle(OTHER_SCHEME, "V1", 16)).toBe("paid");
  const [open] = await sql`select money_names from provider_issues where provider_reference = 'OPEN'`;
  expect(open?.["money_names"]).toEqual([
    '[1, "emvco_generic", "live", ["com.one", "MU"], "money:OPEN"]',
    `provider:${THIRD}:money:OPEN`,
  ]);
});
