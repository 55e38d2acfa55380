import { describe, expect, test } from "vitest";
import { type Retention, removeExpired, startRetention } from "../../services/runtime/retention.ts";

/** A table of `rows` old rows, and the limits of the statements that were run on it. */
function oldRows(rows: number) {
  const limits: number[] = [];
  const remove = async (limit: number) => {
    limits.push(limit);
    const removed = Math.min(limit, rows);
    rows -= removed;
    return removed;
  };
  return { limits, remove };
}

function capturingLog() {
  const lines: object[] = [];
  const take = (fields: object, message: string) => void lines.push({ ...fields, message });
  return { lines, info: take, warn: take };
}

const FAST = { what: "old things", everyMs: 1, rowsPerBatch: 10 };

describe("one turn of the retention job", () => {
  test("repeats each statement until it deletes fewer rows than its limit, and logs the number of rows", async () => {
    const cups = oldRows(25);
    const plates = oldRows(0);
    const log = capturingLog();
    const retention = { ...FAST, removals: { cups: cups.remove, plates: plates.remove } };
    expect(await removeExpired(retention, log)).toEqual({ cups: 25, plates: 0 });
    expect(cups.limits).toEqual([10, 10, 10]);
    expect(plates.limits).toEqual([10]);
    expect(log.lines).toEqual([{ cups: 25, plates: 0, message: "removed old things" }]);
    await removeExpired(retention, log);
    expect(log.lines).toHaveLength(1);
  });
});

describe("the retention job", () => {
  test("fails several times: it logs one failure, and tries again until it succeeds", async () => {
    const log = capturingLog();
    let failures = 0;
    const succeeded = Promise.withResolvers<void>();
    const things = async () => {
      if (failures++ < 3) throw new Error("The database is away.");
      succeeded.resolve();
      return 1;
    };
    const job = startRetention({ ...FAST, removals: { things } }, log);
    await succeeded.promise;
    await job.stop();
    expect(log.lines[0]).toMatchObject({ message: "removing old things has failed" });
    expect(log.lines.slice(1)).toEqual([{ things: 1, message: "removed old things" }]);
  });

  test("is stopped during a statement: no further statement follows", async () => {
    let statements = 0;
    const begun = Promise.withResolvers<void>();
    const things = async (limit: number) => {
      statements += 1;
      begun.resolve();
      await new Promise((resolve) => setTimeout(resolve, 5));
      return limit;
    };
    const retention: Retention = { ...FAST, removals: { things } };
    const job = startRetention(retention, capturingLog());
    await begun.promise;
    await job.stop();
    expect(statements).toBe(1);
  });
});
