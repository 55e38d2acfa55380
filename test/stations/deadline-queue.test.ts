import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DeadlineQueue } from "../../services/stations/deadline-queue.ts";

describe("a deadline queue", () => {
  it("any changes: it returns the due keys that a plain map has, in the order of their times", () => {
    const key = fc.integer({ min: 0, max: 12 });
    const time = fc.integer({ min: 0, max: 60 });
    const action = fc.oneof(
      fc.record({ type: fc.constant("set" as const), key, time }),
      fc.record({ type: fc.constant("delete" as const), key }),
      fc.record({ type: fc.constant("take" as const), time }),
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 400 }), (actions) => {
        const queue = new DeadlineQueue();
        const model = new Map<number, number>();
        for (const act of actions) {
          if (act.type === "set") {
            queue.set(act.key, act.time);
            model.set(act.key, act.time);
          } else if (act.type === "delete") {
            queue.delete(act.key);
            model.delete(act.key);
          } else {
            const due = [...model].filter(([, dueMs]) => dueMs <= act.time);
            for (const [each] of due) model.delete(each);
            const dueMsOf = new Map(due);
            const taken = queue.takeDue(act.time);
            expect(taken.toSorted((a, b) => a - b)).toEqual([...dueMsOf.keys()].toSorted((a, b) => a - b));
            const times = taken.map((each) => dueMsOf.get(each) ?? Number.NaN);
            expect(times).toEqual(times.toSorted((a, b) => a - b));
          }
          expect(queue.size).toBe(model.size);
        }
      }),
    );
  });
});
