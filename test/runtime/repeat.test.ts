/** Repeated work: its log lines, the time when it is due, and reads that callers share. */
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LineLog } from "../../services/runtime/log.ts";
import { DueTime, OutageLog, repeat, sample, shared } from "../../services/runtime/repeat.ts";

/** The log lines about these turns, one turn a second. A text is the reason of a failure, and null is a success. */
async function linesOf(turns: readonly (string | null)[]): Promise<readonly string[]> {
  const lines: string[] = [];
  const log = { warn: ({ err }: { err?: Error }, message: string) => void lines.push(`${message}: ${err?.message}`) };
  const left = turns.values();
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const repeated = repeat({ everyMs: 0, what: "the work", log }, async () => {
    vi.advanceTimersByTime(1_000);
    const { value: reason, done } = left.next();
    if (done === true) end();
    if (typeof reason === "string") throw new Error(reason);
  });
  await over;
  await repeated.stop();
  return lines;
}

const times = (count: number, ...turns: readonly (string | null)[]): readonly (string | null)[] =>
  Array.from({ length: count }, () => turns).flat();

describe("work that is repeated and fails", () => {
  beforeEach(() => {
    // Only `performance` is faked, so the pauses between the turns are real.
    vi.useFakeTimers({ toFake: ["performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("for one reason, for ten minutes: one line", async () => {
    expect(await linesOf(times(600, "refused"))).toEqual(["the work has failed: refused"]);
  });

  it("for two alternating reasons: one line a minute for each", async () => {
    const lines = await linesOf(times(30, "refused", "not dialled"));
    expect(lines).toEqual(["the work has failed: refused", "the work has failed: not dialled"]);
  });

  it("at every second turn, because the others have nothing to do: one line a minute", async () => {
    expect(await linesOf(times(29, "refused", null))).toHaveLength(1);
  });

  it("again for the same reason, a minute after it worked again: another line", async () => {
    expect(await linesOf(["refused", ...times(61, null), "refused"])).toHaveLength(2);
  });
});

const outageLines: object[] = [];
const outageLog: LineLog = {
  warn: (fields: object, message: string) => void outageLines.push({ ...fields, message }),
  info: (fields: object, message: string) => void outageLines.push({ ...fields, message }),
};

describe("the log of an outage", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] });
    outageLines.length = 0;
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("attempts that fail for one reason: one line at the beginning, one each minute, and one at the end", () => {
    const outage = new OutageLog(outageLog, "the copy");
    for (let second = 0; second < 90; second += 1) {
      outage.failed(new Error("no answer"));
      vi.advanceTimersByTime(1_000);
    }
    outage.worked();
    outage.worked();
    expect(outageLines).toEqual([
      { reason: "no answer", attempts: 1, message: "the copy does not work" },
      { reason: "no answer", attempts: 61, message: "the copy does not work" },
      { afterMs: 90_000, attempts: 90, message: "the copy works again" },
    ]);
  });

  it("another reason: another line", () => {
    const outage = new OutageLog(outageLog, "the copy");
    outage.failed(new Error("no answer"));
    outage.failed("no quorum");
    expect(outageLines).toHaveLength(2);
  });

  it("two alternating reasons: one line a minute for each", () => {
    const outage = new OutageLog(outageLog, "the copy");
    for (let second = 0; second < 59; second += 1) {
      outage.failed(second % 2 === 0 ? "no answer" : "no quorum");
      vi.advanceTimersByTime(1_000);
    }
    expect(outageLines).toHaveLength(2);
  });
});

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
  it("nothing waits: it is read once, and again after the idle time", async () => {
    const { known, due } = dueTime(undefined, SOON_MS);
    expect([await due.isDue(), await due.isDue()]).toEqual([false, false]);
    expect(known.reads).toBe(1);
    await delay(2 * SOON_MS);
    known.dueInMs = -1;
    expect(await due.isDue()).toBe(true);
  });

  it("work waits: it is read again at that time, which is before the idle time", async () => {
    const { known, due } = dueTime(SOON_MS);
    expect(await due.isDue()).toBe(false);
    await delay(2 * SOON_MS);
    known.dueInMs = 0;
    expect(await due.isDue()).toBe(true);
    expect(known.reads).toBe(2);
  });

  it("work is due: it is read at each turn until no work is due", async () => {
    const { known, due } = dueTime(-LATER_MS);
    expect([await due.isDue(), await due.isDue()]).toEqual([true, true]);
    known.dueInMs = undefined;
    expect([await due.isDue(), await due.isDue()]).toEqual([false, false]);
    expect(known.reads).toBe(3);
  });

  it("work is written while the time is read: it is read again", async () => {
    const { known, due } = dueTime(undefined);
    const read = due.isDue();
    due.readAgain();
    expect(await read).toBe(false);
    known.dueInMs = -1;
    expect(await due.isDue()).toBe(true);
  });

  it("a read fails: the turn fails, and a later one reads again", async () => {
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

describe("a sample", () => {
  it("several callers at once: they share one read, and a later caller gets a new one", async () => {
    let reads = 0;
    const read = sample(async () => {
      reads += 1;
      await delay(10);
      return reads;
    }, 1_000);
    expect(await Promise.all([read(), read(), read()])).toEqual([1, 1, 1]);
    expect(await read()).toBe(2);
  });

  it("a read that fails or takes too long: undefined, and no second read starts during the first one", async () => {
    let reads = 0;
    const slow = Promise.withResolvers<string>();
    const read = sample(() => {
      reads += 1;
      return reads === 1 ? slow.promise : Promise.reject(new Error("away"));
    }, 30);
    const startedAtMs = performance.now();
    expect(await read()).toBeUndefined();
    expect(performance.now() - startedAtMs).toBeLessThan(1_000);
    expect(await read()).toBeUndefined();
    expect(reads).toBe(1);
    slow.resolve("late");
    await delay(0);
    expect(await read()).toBeUndefined();
    expect(reads).toBe(2);
  });
});

describe("a shared read", () => {
  it("callers during a read: they share the next read, which begins after their call", async () => {
    let reads = 0;
    const read = shared(async () => {
      reads += 1;
      const nth = reads;
      await delay(10);
      return nth;
    });
    const first = read();
    const others = [read(), read()];
    expect(await Promise.all([first, ...others])).toEqual([1, 2, 2]);
    expect(await read()).toBe(3);
  });

  it("a read that fails: its callers get the error, and callers during it get another read", async () => {
    let reads = 0;
    const read = shared(async () => {
      reads += 1;
      if (reads === 1) throw new Error("away");
      return reads;
    });
    const first = read();
    const second = read();
    await expect(first).rejects.toThrow("away");
    expect(await second).toBe(2);
    expect(await read()).toBe(3);
  });
});
