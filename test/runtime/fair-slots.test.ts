import { describe, expect, it } from "vitest";
import { FairSlots, type ReleaseSlot } from "../../services/runtime/fair-slots.ts";

const options = { total: 4, perKey: 2, waiting: 4, waitingPerKey: 3 };
const LONG_MS = 60_000;

describe("FairSlots", () => {
  it("one key takes all it can: it gets at most its share, and another key gets the rest", () => {
    const slots = new FairSlots<string>(options);
    expect([1, 2, 3].map(() => slots.tryAcquire("a") !== undefined)).toEqual([true, true, false]);
    expect(slots.freeOfHolders()).toEqual([{ key: "a", free: 0 }]);
    expect([1, 2, 3].map(() => slots.tryAcquire("b") !== undefined)).toEqual([true, true, false]);
    expect([slots.free, slots.tryAcquire("c")]).toEqual([0, undefined]);
  });

  it("waiting work of several keys: slots go to the keys in turn, and a slot that is released twice counts once", async () => {
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

  it("work that waits too long: it gets no slot and no longer has a place in the queue", async () => {
    const slots = new FairSlots<string>({ ...options, total: 1 });
    const release = slots.tryAcquire("a") as ReleaseSlot;
    expect(await slots.acquire("b", 5)).toBeUndefined();
    const next = slots.acquire("c", LONG_MS);
    release();
    expect(await next).toBeTypeOf("function");
  });

  it("more waiting work of one key than allowed: refused at once", async () => {
    const slots = new FairSlots<string>({ ...options, total: 1 });
    slots.tryAcquire("a");
    const waiting = [1, 2, 3].map(() => slots.acquire("b", LONG_MS));
    expect(await slots.acquire("b", LONG_MS)).toBeUndefined();
    slots.stopWaiting();
    expect(await Promise.all(waiting)).toEqual([undefined, undefined, undefined]);
  });

  it("more waiting work in all than allowed: the newest of the key with the most gets no slot", async () => {
    const slots = new FairSlots<string>({ ...options, total: 1 });
    const first = slots.tryAcquire("a") as ReleaseSlot;
    const order: string[] = [];
    const work = ["b1", "b2", "b3", "c1", "d1", "d2"].map(async (name) => {
      const release = await slots.acquire(name.slice(0, 1), LONG_MS);
      order.push(release === undefined ? `${name} refused` : name);
      release?.();
    });
    await Promise.resolve();
    first();
    await Promise.all(work);
    // `d1` gets the place of `b3`. For `d2`, no key has more waiting work than `d` would have.
    expect(order.toSorted()).toEqual(["b1", "b2", "b3 refused", "c1", "d1", "d2 refused"]);
  });
});

describe("FairSlots with groups", () => {
  const grouped = { total: 12, perKey: 12, waiting: 100, waitingPerKey: 100 };
  const takeAll = (slots: FairSlots<string, string>, key: string, group: string): number => {
    let taken = 0;
    while (slots.tryAcquire(key, group) !== undefined) taken += 1;
    return taken;
  };

  it("groups that take all they can: the first gets half of the slots, and each further one half of the rest", () => {
    const slots = new FairSlots<string, string>(grouped);
    expect(["a", "b", "c"].map((group) => takeAll(slots, `key of ${group}`, group))).toEqual([6, 3, 2]);
    expect(slots.roomOfHolders()).toEqual(["a", "b", "c"].map((group) => ({ group, room: 0 })));
    expect([slots.free, slots.roomOfNewGroup]).toEqual([1, 1]);
  });

  it("two groups with waiting work: after some releases, each has a third of the slots", async () => {
    const slots = new FairSlots<string, string>(grouped);
    const held: ReleaseSlot[] = [];
    for (let nth = 0; nth < 6; nth += 1) held.push(slots.tryAcquire("one", "a") as ReleaseSlot);
    const got = { one: 0, two: 0 };
    const wait = async (key: "one" | "two", group: string): Promise<void> => {
      if ((await slots.acquire(key, LONG_MS, group)) !== undefined) got[key] += 1;
    };
    const waiting = [1, 2, 3, 4, 5, 6].flatMap(() => [wait("one", "a"), wait("two", "b")]);
    for (const release of held.splice(0, 3)) {
      release();
      await new Promise(setImmediate);
    }
    expect([held.length + got.one, got.two]).toEqual([4, 4]);
    slots.stopWaiting();
    await Promise.all(waiting);
  });

  it("the last slots of a group: only for its keys without a slot", () => {
    const slots = new FairSlots<string, string>({ ...grouped, keptForNewKeys: 2 });
    expect([takeAll(slots, "one", "a"), takeAll(slots, "two", "a"), takeAll(slots, "three", "a")]).toEqual([4, 1, 1]);
    expect(takeAll(slots, "four", "a")).toBe(0);
  });

  it("waiting work of two groups: slots go to the groups in turn, also when one has more keys", async () => {
    const slots = new FairSlots<string, string>({ ...grouped, total: 2 });
    const first = slots.tryAcquire("a0", "a") as ReleaseSlot;
    const order: string[] = [];
    const work = ["a1", "a2", "a3", "b1", "b2"].map(async (name) => {
      const release = await slots.acquire(name, LONG_MS, name.slice(0, 1));
      order.push(name);
      await new Promise(setImmediate);
      release?.();
    });
    await new Promise(setImmediate);
    first();
    await Promise.all(work);
    expect(order.filter((name) => name.startsWith("b"))).toEqual(["b1", "b2"]);
    expect(order.indexOf("b2")).toBeLessThan(order.indexOf("a3"));
  });

  it("more waiting work in all than allowed: the newest of the group with the most gets no slot", async () => {
    const slots = new FairSlots<string, string>({ ...grouped, total: 2, waiting: 3 });
    slots.tryAcquire("a0", "a");
    const refused: string[] = [];
    const wait = async (name: string): Promise<void> => {
      if ((await slots.acquire(name, LONG_MS, name.slice(0, 1))) === undefined) refused.push(name);
    };
    const waiting = ["a1", "a2", "a3"].map(wait);
    slots.tryAcquire("b0", "b");
    waiting.push(wait("b1"));
    await new Promise(setImmediate);
    expect(refused).toEqual(["a3"]);
    slots.stopWaiting();
    await Promise.all(waiting);
  });
});
