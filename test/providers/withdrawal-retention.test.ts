/** The withdrawal of a collection without a payment is kept for its retention, and no longer. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import { providersRetention } from "../../services/providers/retention.ts";
import { createLog } from "../../services/runtime/log.ts";
import { removeExpired } from "../../services/runtime/retention.ts";
import { cloneDatabase, type TestDatabase } from "../support/servers.ts";

const { taskRetentionDays } = PROVIDER_LIMITS;
const { rowsPerBatch } = PROVIDER_LIMITS.retention;
let owned: TestDatabase;
let database: Database;
beforeAll(async () => {
  owned = await cloneDatabase();
  database = openDatabase({ url: owned.url });
});
afterAll(async () => {
  await closeDatabase(database);
  await owned.drop();
});

test("withdrawals: those past their retention are deleted, however many, and younger ones stay", async () => {
  const withdraw = (first: number, last: number, ageDays: number) => database`
    insert into provider_withdrawals (intent_id, asked_at)
    select id, now() - make_interval(days => ${ageDays}) from generate_series(${first}::bigint, ${last}::bigint) as id`;
  await withdraw(1, 1, taskRetentionDays - 1);
  await withdraw(2, rowsPerBatch * 2 + 2, taskRetentionDays + 1);
  await withdraw(rowsPerBatch * 2 + 3, rowsPerBatch * 2 + 3, 0);
  await removeExpired(providersRetention({ database }), createLog({ service: "test", level: "silent" }));
  const left = await database`select intent_id from provider_withdrawals order by intent_id`;
  expect(left.map((row) => row["intent_id"])).toEqual([1, rowsPerBatch * 2 + 3]);
});
