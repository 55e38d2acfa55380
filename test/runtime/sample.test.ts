/** A look at something slow: one read for all who look, nobody waits for longer than said, and it recovers. */
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { sample } from "../../services/runtime/repeat.ts";

describe("a sample", () => {
  it("is shared by all who look while it is read, and read anew afterwards", async () => {
    let reads = 0;
    const look = sample(async () => {
      reads += 1;
      await delay(10);
      return reads;
    }, 1_000);
    expect(await Promise.all([look(), look(), look()])).toEqual([1, 1, 1]);
    expect(await look()).toBe(2);
  });

  it("is undefined when it fails, and when it takes too long; then nobody starts a second read beside it", async () => {
    let reads = 0;
    const slow = Promise.withResolvers<string>();
    const look = sample(() => {
      reads += 1;
      return reads === 1 ? slow.promise : Promise.reject(new Error("away"));
    }, 30);
    const startedAtMs = performance.now();
    expect(await look()).toBeUndefined();
    expect(performance.now() - startedAtMs).toBeLessThan(1_000);
    expect(await look()).toBeUndefined();
    expect(reads).toBe(1);
    slow.resolve("late");
    await delay(0);
    expect(await look()).toBeUndefined();
    expect(reads).toBe(2);
  });
});
