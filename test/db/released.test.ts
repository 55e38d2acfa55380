/**
 * Databases of released versions. The test creates each with the migrations of its version, fills it with `data.sql`, and
 * migrates it to this version. The commits of released versions are in `test/machines/golden/`. The one of 0.2.0 is from its
 * development, before the later migrations of that version: it shows that each of them keeps the data.
 */
import { copyFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readInstallation } from "../../services/db/installation.ts";
import { findCopiedIntent } from "../../services/db/intent-history.ts";
import { migrate } from "../../services/db/migrate.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { createEmptyDatabase, type TestDatabase } from "../support/servers.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const MIGRATIONS = join(import.meta.dirname, "..", "..", "services", "db", "migrations");
const RELEASED = join(import.meta.dirname, "released");

describe.each(readdirSync(RELEASED))("a database of version %s", (version) => {
  const folder = temporaryFolder("released");
  const textOf = (file: string): string => readFileSync(join(RELEASED, version, file), "utf8");
  let database: TestDatabase;
  let databaseUrl: string;
  let sql: Database;

  beforeAll(async () => {
    database = await createEmptyDatabase();
    databaseUrl = database.url;
    sql = openDatabase({ url: databaseUrl, maxConnections: 1 });
    for (const migration of textOf("migrations.txt").trim().split("\n")) {
      copyFileSync(join(MIGRATIONS, `${migration}.sql`), join(folder.path, `${migration}.sql`));
    }
    await migrate({ databaseUrl, log: () => undefined, folder: folder.path });
    await sql.unsafe(textOf("data.sql"));
    await migrate({ databaseUrl, log: () => undefined });
  });
  afterAll(async () => {
    await closeDatabase(sql);
    await database.drop();
    folder.remove();
  });

  test("keeps its installation", async () => {
    expect((await readInstallation(databaseUrl)).id).toBe("6d6f6e65-7920-4973-8e65-7665722c206f");
  });

  test("keeps the ends of collections", async () => {
    expect(await findCopiedIntent(sql, { intentId: 1, organizationId: 1 })).toMatchObject({
      stationId: 1,
      intent: { status: "succeeded", attestation: { reference: "T-1", transactionId: 1 } },
    });
  });

  test("keeps payments and refusals: a repeated request changes neither", async () => {
    const ask = async (intentId: number, orderId: number, money: string | null) => {
      const [row] = await sql`
        select settled_as, refusal from settle_intent(${intentId}, ${`attestation-${intentId}`}, 1, ${orderId},
          'dynamic_qr', 1250, 'EUR', 'T-1', 1, ${money})`;
      return row;
    };
    expect(await ask(1, 1, "provider:1:money:T-1")).toEqual({ settled_as: 1, refusal: null });
    expect(await ask(2, 1, null)).toEqual({ settled_as: null, refusal: "order_already_paid" });
    expect(await ask(3, 2, "provider:1:money:T-1")).toEqual({ settled_as: null, refusal: "money_already_used" });
  });

  test("keeps its issues and decisions, and a closed payment settles nothing", async () => {
    const issues = await sql`
      select kind, status, subject_key, account_key, generation, supersedes_id, superseded_by, reason from issues order by issue_id`;
    const one = { account_key: "provider:1", generation: 1, supersedes_id: null, superseded_by: null, reason: null };
    expect(issues).toEqual([
      {
        ...one,
        kind: "amount_under",
        status: "attributed",
        subject_key: "money:T-2",
        superseded_by: 2,
        reason: "short",
      },
      { ...one, kind: "amount_under", status: "open", subject_key: "money:T-2", generation: 2, supersedes_id: 1 },
      { ...one, kind: "amount_over", status: "open", subject_key: "money:T-3" },
      { ...one, kind: "amount_unknown", status: "open", subject_key: "money:T-4" },
      { ...one, kind: "unmatched_money", status: "closed", subject_key: "money:T-5", reason: "paid back" },
    ]);
    const [answer] = await sql`
      select refusal from settle_intent(4, 'attestation-4', 1, 2, 'dynamic_qr', 1250, 'EUR', 'T-5', 1, 'provider:1:money:T-5')`;
    expect(answer).toEqual({ refusal: "money_already_used" });
  });

  test("keeps the messages that wait for the relay", async () => {
    expect(await sql`select key from outbox where delivered_at is null`).toEqual([{ key: "station.1" }]);
  });
});
