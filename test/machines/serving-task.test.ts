/** The serving task: every status, every event, and random sequences of events. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  nextTaskStatus,
  SERVING_TASK_EVENTS,
  SERVING_TASK_STATUSES,
  type ServingTaskEvent,
  type ServingTaskStatus,
  servingTaskMachine,
} from "../../machines/serving-task.ts";
import { holdsItsTable, type TransitionTable } from "./transition-table.ts";

type EventType = ServingTaskEvent["type"];

const ENDED = { ACCEPT: "not taken", COMPLETE: "not taken", CANCEL: "not taken", EXPIRE: "not taken" } as const;
const TABLE: TransitionTable<ServingTaskStatus, EventType> = {
  offered: { ACCEPT: "accepted", COMPLETE: "not taken", CANCEL: "cancelled", EXPIRE: "expired" },
  accepted: { ACCEPT: "not taken", COMPLETE: "completed", CANCEL: "cancelled", EXPIRE: "not taken" },
  completed: ENDED,
  cancelled: ENDED,
  expired: ENDED,
};

holdsItsTable({
  name: "the serving task",
  machine: servingTaskMachine,
  contextIn: () => ({}),
  event: (type) => ({ type }),
  table: TABLE,
});

describe("the next status of a serving task", () => {
  it.each(SERVING_TASK_STATUSES.flatMap((status) => SERVING_TASK_EVENTS.map((type) => [status, type] as const)))(
    "%s × %s follows the table",
    (status, type) => {
      expect(nextTaskStatus(status, type) ?? "not taken").toBe(TABLE[status][type]);
    },
  );
});

/** Takes the events that the machine accepts, in their order. */
function live(events: readonly EventType[]): { readonly taken: EventType[]; readonly status: ServingTaskStatus } {
  const taken: EventType[] = [];
  let status: ServingTaskStatus = "offered";
  for (const type of events) {
    const next = nextTaskStatus(status, type);
    if (next === undefined) continue;
    taken.push(type);
    status = next;
  }
  return { taken, status };
}

describe("any events in any order", () => {
  const lives = fc.array(fc.constantFrom(...SERVING_TASK_EVENTS), { maxLength: 12 });

  it("M27 of accept, cancel and expire exactly one ends the offer", () => {
    fc.assert(
      fc.property(lives, (events) => {
        const { taken } = live(events);
        const [first, ...rest] = taken;
        const some = events.some((type) => type !== "COMPLETE");
        expect(first === undefined).toBe(!some);
        if (first !== undefined) expect(["ACCEPT", "CANCEL", "EXPIRE"]).toContain(first);
        expect(rest).not.toContain("ACCEPT");
        expect(rest).not.toContain("EXPIRE");
      }),
    );
  });

  it("M28 a task ends at most once, and an ended task does not change", () => {
    fc.assert(
      fc.property(lives, fc.constantFrom(...SERVING_TASK_EVENTS), (events, further) => {
        const { taken, status } = live(events);
        const ends = taken.filter((type) => type !== "ACCEPT");
        expect(ends.length).toBeLessThanOrEqual(1);
        if (ends.length === 1) expect(nextTaskStatus(status, further)).toBeUndefined();
      }),
    );
  });

  it("M29 only an accepted task is completed, and only one that was not accepted expires", () => {
    fc.assert(
      fc.property(lives, (events) => {
        const { taken, status } = live(events);
        if (status === "completed") expect(taken).toEqual(["ACCEPT", "COMPLETE"]);
        if (status === "expired") expect(taken).toEqual(["EXPIRE"]);
      }),
    );
  });
});
