import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { insertOutbox, type OutboxRow, sessionKey, stationKey } from "../../services/db/outbox.ts";
import type { Database } from "../../services/db/pool.ts";
import { HOLDS_LOCKS } from "../support/held-locks.ts";
import { openClone } from "../support/open-clone.ts";

let sql: Database;

beforeAll(async () => {
  const clone = await openClone(HOLDS_LOCKS);
  sql = clone.sql;
  return clone.stop;
});
beforeEach(async () => {
  await sql`truncate outbox restart identity`;
});

const row = (stationId: number): OutboxRow => ({
  key: stationKey(stationId),
  kind: "credential_put",
  hash: "00".repeat(32),
  entry: { deviceId: 7, stationId, scopes: ["device:read"] },
});

describe("the outbox", () => {
  test("a row: stored only if its transaction commits", async () => {
    const failed = sql.begin(async (tx) => {
      await insertOutbox(tx, row(1));
      throw new Error("changed my mind");
    });
    await expect(failed).rejects.toThrow("changed my mind");
    expect(await sql`select * from outbox`).toHaveLength(0);

    const outboxId = await sql.begin((tx) => insertOutbox(tx, row(1)));
    expect(await sql`select outbox_id, key, kind, payload, delivered_at from outbox`).toEqual([
      {
        outbox_id: outboxId,
        key: "station.1",
        kind: "credential_put",
        payload: { hash: "00".repeat(32), entry: { deviceId: 7, stationId: 1, scopes: ["device:read"] } },
        delivered_at: null,
      },
    ]);
  });

  test("two writers of one key: the later one waits for the commit of the first, so that ids follow commits", async () => {
    const order: string[] = [];
    const written = Promise.withResolvers<void>();
    const checked = Promise.withResolvers<void>();
    const slow = sql.begin(async (tx) => {
      await insertOutbox(tx, row(1));
      written.resolve();
      await checked.promise;
      order.push("slow commits");
    });
    await written.promise;
    const fast = sql.begin(async (tx) => {
      await insertOutbox(tx, row(1));
      order.push("fast commits");
    });
    await delay(75);
    // The later writer waits. So no reader can see its row without the earlier row.
    expect(await sql`select outbox_id from outbox`).toHaveLength(0);
    checked.resolve();
    await Promise.all([slow, fast]);
    expect(order).toEqual(["slow commits", "fast commits"]);
  });

  test("writers of different keys: they do not wait for each other", async () => {
    await sql.begin(async (slow) => {
      await insertOutbox(slow, row(1));
      await sql.begin(async (other) => {
        await other`set local lock_timeout = 200`;
        await insertOutbox(other, { key: sessionKey(1), kind: "session_delete", hash: "11".repeat(32) });
      });
      expect(await sql`select key from outbox`).toEqual([{ key: "session.1" }]);
    });
  });
});
