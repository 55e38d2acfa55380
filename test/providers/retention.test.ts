/** The providers service deletes its records when their retention has ended, and not before. */
import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, expect, test } from "vitest";
import type { Database } from "../../services/db/pool.ts";
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import { providersRetention } from "../../services/providers/retention.ts";
import { createLog } from "../../services/runtime/log.ts";
import { removeExpired } from "../../services/runtime/retention.ts";
import { openClone } from "../support/open-clone.ts";

const { callbackRetentionDays, variantRetentionDays, taskRetentionDays, refusalRetentionDays, refusalRows } =
  PROVIDER_LIMITS;
let database: Database;
beforeAll(async () => {
  const clone = await openClone();
  database = clone.sql;
  await database`insert into organizations (name) values ('Organization')`;
  await database`insert into filials (organization_id, name) values (1, 'Filial')`;
  await database`
    insert into provider_configs (organization_id, filial_id, kind, mode, name, settings)
    values (1, 1, 'emvco_generic', 'test', 'Acquirer', '{}')`;
  await database`
    insert into provider_payments (intent_id, config_id, organization_id, station_id, order_display_number, reference,
      account, amount_minor, currency, expires_at, asked_until)
    values (1, 1, 1, 1, 1, 'OURS', 'M-1', 1250, 'EUR', now(), now())`;
  return clone.stop;
});

const longAgo = new Date(Date.now() - (taskRetentionDays + 1) * 24 * 3_600_000);
const remove = () => removeExpired(providersRetention({ database }), createLog({ service: "test", level: "silent" }));

test("old callbacks are deleted, and their variants after a shorter time", async () => {
  for (const [key, ageDays] of [
    ["old", callbackRetentionDays + 1],
    ["young", callbackRetentionDays - 1],
  ] as const)
    await database`
      insert into provider_callbacks (config_id, event_key, event_type, outcome, body, answer_status, answer_body, received_at)
      values (1, ${key}, 'payment.paid', 'ignored', '', 200, '', now() - make_interval(days => ${ageDays}))`;
  for (const [hash, ageDays] of [
    ["1", variantRetentionDays + 1],
    ["2", variantRetentionDays - 1],
  ] as const)
    await database`
      insert into provider_callback_variants (callback_id, body_hash, body, outcome, received_at)
      values (2, sha256(${Buffer.from(hash)}), ${Buffer.from(hash)}, 'ignored', now() - make_interval(days => ${ageDays}))`;
  await remove();
  expect(await database`select event_key from provider_callbacks`).toEqual([{ event_key: "young" }]);
  expect(await database`select convert_from(body, 'UTF8') as hash from provider_callback_variants`).toEqual([
    { hash: "2" },
  ]);
});

test("old ended tasks are deleted, and pending tasks are not", async () => {
  await database`
    insert into provider_tasks (intent_id, kind, created_at, done_at)
    values (1, 'poll', ${longAgo}, ${longAgo}), (1, 'withdraw', ${longAgo}, null), (1, 'fail', ${longAgo}, now())`;
  await remove();
  expect(await database`select kind from provider_tasks order by kind`).toEqual([
    { kind: "fail" },
    { kind: "withdraw" },
  ]);
});

test("an old ended task that is taken again during the removal stays", async () => {
  await database`
    insert into provider_tasks (intent_id, kind, created_at, done_at) values (1, 'differ', ${longAgo}, ${longAgo})`;
  const { removal } = await database.begin(async (tx) => {
    await tx`update provider_tasks set done_at = null where kind = 'differ'`;
    const removing = remove();
    await Promise.race([removing, delay(500)]);
    return { removal: removing };
  });
  await removal;
  expect(await database`select kind from provider_tasks where kind = 'differ'`).toHaveLength(1);
});

test("old refusals are deleted, and young ones beyond a number of rows too", async () => {
  const refuse = (rows: number, ageDays: number) => database`
    insert into provider_callback_refusals (at, config_id, address, reason)
    select now() - make_interval(days => ${ageDays}), 1, '192.0.2.1', 'signature_invalid'
    from generate_series(1, ${rows}::bigint)`;
  await refuse(3, refusalRetentionDays + 1);
  await refuse(2, refusalRetentionDays - 1);
  await remove();
  const count = async () =>
    (await database<[{ rows: number }]>`select count(*) as rows from provider_callback_refusals`)[0].rows;
  expect(await count()).toBe(2);
  await refuse(refusalRows, 0);
  await remove();
  expect(await count()).toBe(refusalRows);
});

test("old withdrawals are deleted, also more than one batch, and younger ones stay", async () => {
  const { rowsPerBatch } = PROVIDER_LIMITS.retention;
  const withdraw = (first: number, last: number, ageDays: number) => database`
    insert into provider_withdrawals (intent_id, asked_at)
    select id, now() - make_interval(days => ${ageDays}) from generate_series(${first}::bigint, ${last}::bigint) as id`;
  await withdraw(1, 1, taskRetentionDays - 1);
  await withdraw(2, rowsPerBatch * 2 + 2, taskRetentionDays + 1);
  await withdraw(rowsPerBatch * 2 + 3, rowsPerBatch * 2 + 3, 0);
  await remove();
  const left = await database`select intent_id from provider_withdrawals order by intent_id`;
  expect(left.map((row) => row["intent_id"])).toEqual([1, rowsPerBatch * 2 + 3]);
});
