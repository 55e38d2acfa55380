import { beforeAll, describe, expect, test } from "vitest";
import { DATABASE_LIMITS } from "../../services/db/limits.ts";
import { type Database, parseSafeInteger } from "../../services/db/pool.ts";
import { openClone } from "../support/open-clone.ts";

let sql: Database;

beforeAll(async () => {
  const clone = await openClone();
  sql = clone.sql;
  return clone.stop;
});

describe("the pool", () => {
  test("an int8: returned as a number", async () => {
    const [row] = await sql<{ id: number; most: number }[]>`select 42::int8 as id, ${2 ** 53 - 1}::int8 as most`;
    expect(row).toEqual({ id: 42, most: Number.MAX_SAFE_INTEGER });
  });

  test("an int8 that a number cannot hold: the statement fails, and the connection still works", async () => {
    expect(() => parseSafeInteger("9007199254740993")).toThrow(RangeError);
    await expect(sql`select 9007199254740993::int8 as id`.execute()).rejects.toThrow(
      "The integer 9007199254740993 is too large for a number.",
    );
    // The connection works after the error.
    expect(await sql`select 1::int8 as id`).toMatchObject([{ id: 1 }]);
  });

  test("column names: returned as in SQL", async () => {
    expect(await sql`select 1 as snake_case`).toMatchObject([{ snake_case: 1 }]);
  });

  test("JSON and times: written and read back", async () => {
    const at = new Date("2026-11-21T10:00:00.123Z");
    const [row] = await sql`select ${sql.json({ a: 1 })} as json, ${at}::timestamptz as at`;
    expect(row).toEqual({ json: { a: 1 }, at });
  });

  test.each([
    { type: "text[]", elements: ["a", "b,c", "", "NULL", "{x}", String.raw`\"`, " ö ", "\n", null] },
    { type: "text[]", elements: [] },
    { type: "bigint[]", elements: [1, Number.MAX_SAFE_INTEGER, -3, null] },
    { type: "int[]", elements: [1, -2, null] },
    { type: "text[]", given: '{"a b",null}', elements: ["a b", null] },
    { type: "float8[]", given: "{1,null}", elements: "{1,NULL}" },
  ])("an array of type $type ($elements): written and read back", async ({ type, elements, given = elements }) => {
    const [row] = await sql`select ${given as string[]}::${sql.unsafe(type)} as elements`;
    expect(row).toEqual({ elements });
  });

  test("many statements at once: no more connections than its limit", async () => {
    await Promise.all(Array.from({ length: 40 }, () => sql`select pg_sleep(0.01)`));
    const [row] = await sql<{ connections: number }[]>`
      select count(*) as connections from pg_stat_activity where datname = current_database()`;
    expect(row?.connections).toBeLessThanOrEqual(DATABASE_LIMITS.maxConnections);
  });

  test("a statement that runs too long: PostgreSQL cancels it", async () => {
    const [row] = await sql`select current_setting('statement_timeout') as timeout`;
    expect(row?.["timeout"]).toBe(`${DATABASE_LIMITS.statementTimeoutMs / 1000}s`);
    await expect(
      sql.begin(async (tx) => {
        await tx`set local statement_timeout = 50`;
        await tx`select pg_sleep(5)`;
      }),
    ).rejects.toMatchObject({ code: "57014" });
  });
});
