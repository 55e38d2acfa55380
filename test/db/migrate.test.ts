import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { migrate, refuseOldPostgresql } from "../../services/db/migrate.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { createEmptyDatabase, type TestDatabase } from "../support/servers.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

const MIGRATIONS = join(import.meta.dirname, "..", "..", "services", "db", "migrations");
const NAMES = readdirSync(MIGRATIONS)
  .map((file) => file.replace(/\.sql$/, ""))
  .toSorted();

let folder: TemporaryFolder;
let url: string;
let count = 0;
const made: TestDatabase[] = [];

beforeAll(() => {
  folder = temporaryFolder("migrations");
});

/** These tests need an empty database. Other tests clone the migrated template. */
beforeEach(async () => {
  const database = await createEmptyDatabase();
  made.push(database);
  url = database.url;
});

afterAll(async () => {
  for (const database of made) await database.drop();
  folder.remove();
});

async function query<T>(work: (sql: Database) => Promise<T>): Promise<T> {
  const sql = openDatabase({ url, maxConnections: 1 });
  try {
    return await work(sql);
  } finally {
    await closeDatabase(sql);
  }
}

const appliedNames = (): Promise<string[]> =>
  query(async (sql) =>
    (await sql<{ name: string }[]>`select name from schema_migrations order by id`).map((r) => r.name),
  );

/** A folder with this program's migrations and another one, like the folder of the next version. */
function newerProgram(sql: string): string {
  const path = join(folder.path, `newer-${count++}`);
  mkdirSync(path);
  for (const file of readdirSync(MIGRATIONS)) copyFileSync(join(MIGRATIONS, file), join(path, file));
  writeFileSync(join(path, "9000_from_the_future.sql"), sql);
  return path;
}

describe("migrate", () => {
  test("an empty database: migrated to the schema, and each step is printed", async () => {
    const lines: string[] = [];
    const applied = await migrate({ databaseUrl: url, log: (line) => lines.push(line) });
    expect(applied).toEqual(NAMES);
    expect(lines).toEqual(NAMES.map((name) => `applied migration ${name}`));
    const tables = await query(
      (sql) => sql<{ table_name: string }[]>`
      select table_name from information_schema.tables where table_schema = 'public' order by 1`,
    );
    expect(tables.map((table) => table.table_name)).toEqual(
      expect.arrayContaining(["devices", "enrollment_codes", "outbox", "stations", "users"]),
    );
  });

  test("a second run: does nothing", async () => {
    await migrate({ databaseUrl: url, log: () => undefined });
    const before = await appliedNames();
    expect(await migrate({ databaseUrl: url, log: () => undefined })).toEqual([]);
    expect(await appliedNames()).toEqual(before);
  });

  test("several programs at once: one of them migrates", async () => {
    const runs = await Promise.all(
      Array.from({ length: 4 }, () => migrate({ databaseUrl: url, log: () => undefined })),
    );
    expect(runs.filter((applied) => applied.length > 0)).toHaveLength(1);
    expect(await appliedNames()).toEqual(NAMES);
  });

  test("an older schema: migrated further, with its data", async () => {
    await migrate({ databaseUrl: url, log: () => undefined });
    await query((sql) => sql`insert into organizations (name) values ('Kept')`);
    const newer = newerProgram("create table from_the_future (id bigint);");
    expect(await migrate({ databaseUrl: url, log: () => undefined, folder: newer })).toEqual(["9000_from_the_future"]);
    expect(await query((sql) => sql`select name from organizations`)).toMatchObject([{ name: "Kept" }]);
  });

  test("a newer schema: refused and left unchanged", async () => {
    await migrate({
      databaseUrl: url,
      log: () => undefined,
      folder: newerProgram("create table from_the_future (id bigint);"),
    });
    const before = await appliedNames();
    await expect(migrate({ databaseUrl: url, log: () => undefined })).rejects.toMatchObject({
      name: "UserError",
      code: "schema_newer",
      message:
        "The database was written by a newer version of this program (it has 9000_from_the_future); start that version, or use another database.",
    });
    expect(await appliedNames()).toEqual(before);
  });

  test("a failing migration: rolled back as a whole, with the reason", async () => {
    await migrate({ databaseUrl: url, log: () => undefined });
    const broken = newerProgram("create table half_done (id bigint); select 1 / 0;");
    await expect(migrate({ databaseUrl: url, log: () => undefined, folder: broken })).rejects.toThrow(
      "division by zero",
    );
    expect(await appliedNames()).toEqual(NAMES);
    expect(await query((sql) => sql`select to_regclass('half_done') as name`)).toMatchObject([{ name: null }]);
    rmSync(broken, { recursive: true });
  });
});

test.each([
  ["14.20", 140_020, "postgres_too_old"],
  ["15.0", 150_000, undefined],
  ["18.4", 180_004, undefined],
])("PostgreSQL %s: refused when it is too old", (_, version, code) => {
  let refused: unknown;
  try {
    refuseOldPostgresql(version);
  } catch (error) {
    refused = error;
  }
  expect((refused as { readonly code?: string } | undefined)?.code).toBe(code);
});
