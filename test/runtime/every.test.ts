import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { every } from "../../services/runtime/every.ts";

const INTERVAL_MS = 40;

test("checks with the same interval that began at different times: they run in the same turns, each until it is stopped", async () => {
  const turns: string[][] = [];
  const check = (name: string) => () => {
    const [last] = turns.slice(-1);
    if (last?.includes(name) === false) return void last.push(name);
    const names = [name];
    turns.push(names);
    // The next turn of the event loop is another turn of the checks.
    setImmediate(() => names.push("end"));
  };
  const stopFirst = every(INTERVAL_MS, check("first"));
  await delay(INTERVAL_MS / 2);
  const stopSecond = every(INTERVAL_MS, check("second"));
  await expect.poll(() => turns.length).toBeGreaterThan(3);
  stopFirst();
  const both = turns.length;
  await expect.poll(() => turns.length).toBeGreaterThan(both + 1);
  stopSecond();
  const all = turns.length;
  await delay(INTERVAL_MS * 3);
  expect(turns).toHaveLength(all);
  expect(turns.slice(1, both)).toEqual(Array.from({ length: both - 1 }, () => ["first", "second", "end"]));
  expect(turns.slice(both)).toEqual(Array.from({ length: all - both }, () => ["second", "end"]));
});

test("a check: it runs at its interval, not more often", async () => {
  let runs = 0;
  const stop = every(INTERVAL_MS, () => {
    runs += 1;
  });
  const startedAtMs = performance.now();
  await delay(INTERVAL_MS * 10);
  stop();
  expect(runs).toBeLessThanOrEqual(Math.ceil((performance.now() - startedAtMs) / INTERVAL_MS) + 1);
  expect(runs).toBeGreaterThan(1);
});
