/** Migrations 0018 and 0020 name the money of each account, remember what was said of it and tell stations of open issues. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrate } from "../../services/db/migrate.ts";
import { type Database } from "../../services/db/pool.ts";
import { createOlderDatabase, type OlderDatabase } from "../support/older-database.ts";

let older: OlderDatabase;
let sql: Database;
let url: string;

beforeAll(async () => {
  older = await createOlderDatabase("0018");
  ({ sql, url } = older);
});
afterAll(() => older.stop());

test("money that has paid by one config pays by no other of its account; open issues are told", async () => {
  await older.migrateAsBefore();
  await older.addStation("EUR");
  await sql`
    insert into orders (organization_id, station_id, display_number, currency, total_minor, opened_by)
    select 1, 1, number, 'EUR', 1250, 2 from generate_series(1, 6) as number`;
  const settings = sql.json({ merchant_account: { merchant_id: "M-1" } });
  await sql`
    insert into provider_configs (organization_id, filial_id, kind, mode, name, status, settings)
    values (1, 1, 'emvco_generic', 'live', 'Old', 'disabled', ${settings}),
      (1, 1, 'emvco_generic', 'live', 'New', 'active', ${settings}),
      (1, 1, 'emvco_generic', 'test', 'Test', 'active', ${settings})`;
  await sql`
    insert into provider_payments (intent_id, config_id, organization_id, station_id, order_display_number, reference,
      account, amount_minor, currency, expires_at, asked_until, provider_reference, paid_reference, paid_at)
    values (1, 1, 1, 1, 1, 'OURS', 'M-0', 1250, 'EUR', now(), now(), ' T-1', ' T-1', now())`;
  for (const [id, key] of [
    [1, "provider:1:money: T-1"],
    [2, "provider:1:money:T-2"],
    [3, "provider:2:money:T-2"],
  ] as const)
    await sql`select settle_intent(${id}, 'a', 1, ${id}, 'dynamic_qr', 1250, 'EUR', 'T', 2, ${key})`;
  await sql`
    insert into provider_issues (organization_id, config_id, kind, money_key, intent_id, provider_reference, evidence)
    values (1, 1, 'amount_mismatch', 'money:X', 1, 'X', '{"further": [{"same_amount": false, "said": "x"}]}'),
      (1, 1, 'late_money', 'money:Y', 1, 'Y', '{"further": [{"same_amount": true}]}'),
      (1, 1, 'unmatched_money', 'money:Z', null, 'Z', '{}')`;
  await sql`
    insert into provider_tasks (intent_id, kind, detail, done_at, outcome)
    values (1, 'differ', '{"issue": "late_money", "issueId": 2}', now(), 'told'), (1, 'clear', '{"issueId": 1}', null, null)`;

  await migrate({ databaseUrl: url, log: () => undefined });

  const named = await sql`
    select intent_id, name from paid_money_names join transactions using (transaction_id) order by intent_id, name collate "C"`;
  expect(named.map((row) => [row["intent_id"], row["name"]])).toEqual([
    [1, '[1, "emvco_generic", "live", "M-0", "money:T-1"]'],
    [1, "provider:1:money: T-1"],
    [1, "provider:1:money:T-1"],
    [2, '[1, "emvco_generic", "live", "M-1", "money:T-2"]'],
    [2, "provider:1:money:T-2"],
    [3, "provider:2:money:T-2"],
  ]);
  const asked = async (orderId: number, key: string): Promise<unknown> => {
    const [row] = await sql`
      select refusal from settle_intent(${orderId + 10}, ${key}, 1, ${orderId}, 'dynamic_qr', 1250, 'EUR', 'T', 2, ${key})`;
    return row?.["refusal"];
  };
  expect(await asked(4, "provider:1:money:T-3")).toBeNull();
  expect(await asked(5, "provider:2:money:T-3")).toBe("money_already_used");
  expect(await asked(5, "provider:3:money:T-3")).toBeNull();
  const issues = await sql`select said_differently from provider_issues order by issue_id`;
  expect(issues.map((row) => row["said_differently"])).toEqual([true, false, false]);
  const tasks = await sql`
    select kind, detail, done_at is null as is_open from provider_tasks order by kind`;
  expect(tasks).toEqual([
    { kind: "clear", detail: { issueId: 1 }, is_open: false },
    {
      kind: "differ",
      detail: {
        issues: [
          { issue: "amount_mismatch", issueId: 1, nth: "1" },
          { issue: "late_money", issueId: 2, nth: "2" },
        ],
      },
      is_open: true,
    },
  ]);
});
