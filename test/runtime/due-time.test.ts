import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { DueTime } from "../../services/runtime/repeat.ts";

const SOON_MS = 30;
const LATER_MS = 60_000;

function dueTime(dueInMs: number | undefined, idleMs = LATER_MS) {
  const known = { dueInMs, reads: 0 };
  const read = async (): Promise<number | undefined> => {
    known.reads += 1;
    return known.dueInMs;
  };
  return { known, due: new DueTime(read, idleMs) };
}

describe("the time at which work is due", () => {
  test("nothing waits: it is read once, and again after the idle time", async () => {
    const { known, due } = dueTime(undefined, SOON_MS);
    expect([await due.isDue(), await due.isDue()]).toEqual([false, false]);
    expect(known.reads).toBe(1);
    await delay(2 * SOON_MS);
    known.dueInMs = -1;
    expect(await due.isDue()).toBe(true);
  });

  test("work waits: it is read again when the time has come, and before the idle time", async () => {
    const { known, due } = dueTime(SOON_MS);
    expect(await due.isDue()).toBe(false);
    await delay(2 * SOON_MS);
    known.dueInMs = 0;
    expect(await due.isDue()).toBe(true);
    expect(known.reads).toBe(2);
  });

  test("work is due: it is read at each turn until none is", async () => {
    const { known, due } = dueTime(-LATER_MS);
    expect([await due.isDue(), await due.isDue()]).toEqual([true, true]);
    known.dueInMs = undefined;
    expect([await due.isDue(), await due.isDue()]).toEqual([false, false]);
    expect(known.reads).toBe(3);
  });

  test("work is written while the time is read: it is read again", async () => {
    const { known, due } = dueTime(undefined);
    const read = due.isDue();
    due.readAgain();
    expect(await read).toBe(false);
    known.dueInMs = -1;
    expect(await due.isDue()).toBe(true);
  });

  test("a read fails: the turn fails, and a later one reads again", async () => {
    let isUp = false;
    const read = async (): Promise<number> => {
      if (!isUp) throw new Error("The database is away.");
      return 0;
    };
    const due = new DueTime(read, SOON_MS);
    await expect(due.isDue()).rejects.toThrow("The database is away.");
    isUp = true;
    await delay(2 * SOON_MS);
    expect(await due.isDue()).toBe(true);
  });
});
