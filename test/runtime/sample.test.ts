/** Reads that callers share: a sample, which bounds each wait, and a shared read, which is newer than each question. */
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { sample, shared } from "../../services/runtime/repeat.ts";

describe("a sample", () => {
  it("is shared by all callers while it is read, and read again afterwards", async () => {
    let reads = 0;
    const read = sample(async () => {
      reads += 1;
      await delay(10);
      return reads;
    }, 1_000);
    expect(await Promise.all([read(), read(), read()])).toEqual([1, 1, 1]);
    expect(await read()).toBe(2);
  });

  it("is undefined when it fails, and when it takes too long; then no second read starts beside it", async () => {
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
  it("each caller gets a read that began after it asked, and callers who wait share one", async () => {
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

  it("a read that fails: its callers get the error, and those behind it another read", async () => {
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
