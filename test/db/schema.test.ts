import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { describeSchema } from "../../services/db/describe-schema.ts";
import type { Database } from "../../services/db/pool.ts";
import { openClone } from "../support/open-clone.ts";

const SCHEMA_FILE = join(import.meta.dirname, "..", "..", "services", "db", "schema.sql");

let sql: Database;
beforeAll(async () => {
  const clone = await openClone({ maxConnections: 1 });
  sql = clone.sql;
  return clone.stop;
});

test("schema.sql: equals the result of the migrations", async () => {
  const text = await describeSchema(sql);
  expect(text, "services/db/schema.sql is stale: run `npm run schema`").toBe(readFileSync(SCHEMA_FILE, "utf8"));
});

describe("the schema as text: contains each change", () => {
  const original = readFileSync(SCHEMA_FILE, "utf8");
  test.each([
    ["a column", "alter table orders add column note text", "note text"],
    [
      "a default",
      "alter table orders alter column currency set default 'EUR'",
      "currency text default 'EUR'::text not null",
    ],
    [
      "a bound",
      "alter table orders add constraint few check (total_minor < 100)",
      "constraint few CHECK (total_minor < 100)",
    ],
    ["an index", "create index few on orders (total_minor)", "CREATE INDEX few ON orders USING btree (total_minor)"],
    [
      "a trigger",
      "alter table orders disable trigger orders_closed_for_good",
      "disable trigger orders_closed_for_good",
    ],
    ["a comment", "comment on column orders.status is 'x'", "comment on column orders.status is 'x'"],
    ["a function", "create function few() returns int language sql as 'select 1'", "FUNCTION few()"],
    ["a storage option", "alter table orders set (fillfactor = 50)", ") with (fillfactor=50)"],
    ["a sequence", "create sequence few", "create sequence few as bigint"],
  ])("%s", async (_, change, shown) => {
    const text = await changed(change);
    expect(text).toContain(shown);
    expect(original).not.toContain(shown);
  });

  test.each([
    ["create view few as select 1 as one", "few"],
    ["create type few as enum ('a')", "few"],
    ["create domain few as text", "few"],
    ["grant select on orders to public", "orders"],
    ["alter table orders enable row level security", "orders"],
    ["create table few (like orders) partition by list (status)", "few"],
  ])("it refuses what it cannot write: %s", async (change, name) => {
    await expect(changed(change)).rejects.toThrow(`does not know how to write ${name}.`);
  });
});

/** The schema's text with the change, which is rolled back. */
async function changed(change: string): Promise<string> {
  const rollback = new Error("rolled back");
  let text = "";
  await sql
    .begin(async (transaction) => {
      await transaction.unsafe(change);
      text = await describeSchema(transaction);
      throw rollback;
    })
    .catch((error: unknown) => {
      if (error !== rollback) throw error;
    });
  return text;
}
