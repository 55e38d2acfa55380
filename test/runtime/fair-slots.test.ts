import { describe, expect, it } from "vitest";
import { FairSlots, type ReleaseSlot } from "../../services/runtime/fair-slots.ts";

const options = { total: 4, perKey: 2, waiting: 4, waitingPerKey: 3 };
const LONG_MS = 60_000;

describe("FairSlots", () => {
  it("one key holds at most its share, and leaves slots for another", () => {
    const slots = new FairSlots<string>(options);
    expect([1, 2, 3].map(() => slots.tryAcquire("a") !== undefined)).toEqual([true, true, false]);
    expect(slots.freeOfHolders()).toEqual([{ key: "a", free: 0 }]);
    expect([1, 2, 3].map(() => slots.tryAcquire("b") !== undefined)).toEqual([true, true, false]);
    expect([slots.free, slots.tryAcquire("c")]).toEqual([0, undefined]);
  });

  it("waiting work gets slots in turn, key by key, and a slot that was given back twice counts once", async () => {
    const slots = new FairSlots<string>({ ...options, total: 1, perKey: 1 });
    const first = slots.tryAcquire("a") as ReleaseSlot;
    const order: string[] = [];
    const work = ["a1", "a2", "b1"].map(async (name) => {
      const release = await slots.acquire(name.slice(0, 1), LONG_MS);
      order.push(name);
      release?.();
      release?.();
    });
    first();
    await Promise.all(work);
    expect(order).toEqual(["a1", "b1", "a2"]);
    expect(slots.free).toBe(1);
  });

  it("work that waits too long gets no slot and takes no place in the queue", async () => {
    const slots = new FairSlots<string>({ ...options, total: 1 });
    const release = slots.tryAcquire("a") as ReleaseSlot;
    expect(await slots.acquire("b", 5)).toBeUndefined();
    const next = slots.acquire("c", LONG_MS);
    release();
    expect(await next).toBeTypeOf("function");
  });

  it("more waiting work than allowed gets no slot at once, of one key and in all", async () => {
    const slots = new FairSlots<string>({ ...options, total: 1 });
    slots.tryAcquire("a");
    const waiting = [1, 2, 3].map(() => slots.acquire("b", LONG_MS));
    expect(await slots.acquire("b", LONG_MS)).toBeUndefined();
    waiting.push(slots.acquire("c", LONG_MS));
    expect(await slots.acquire("d", LONG_MS)).toBeUndefined();
    slots.stopWaiting();
    expect(await Promise.all(waiting)).toEqual([undefined, undefined, undefined, undefined]);
  });
});
