/** The golden traces of the device kit: each can be replayed, and together they have every row of the kit's SPEC. */
import { describe, expect, it } from "vitest";
import { nameOf, readTrace, replay, specRows, traceFiles } from "./traces.ts";

const rows = new Map(specRows().map((row) => [row.id, row]));

describe.each(traceFiles)("golden trace %s", (file) => {
  const trace = readTrace(file);
  const replayed = replay(trace);

  it("replayed: each step has the effects and the regions that the trace names", () => {
    for (const [index, { step, effects, after }] of replayed.entries())
      expect({ index, effects, regions: after }).toEqual({ index, effects: step.effects, regions: step.regions });
  });

  it("its rows: each moves its region as in the SPEC, and together they explain each effect", () => {
    for (const [index, { step, before, after, effects }] of replayed.entries()) {
      const reached = step.rows.map((id) => rows.get(id));
      for (const row of reached)
        expect({
          index,
          event: nameOf(step.event),
          from: before[row?.region ?? "work"],
          to: after[row?.region ?? "work"],
        }).toEqual({ index, event: row?.event, from: row?.from, to: row?.to });
      const explained = new Set(reached.flatMap((row) => row?.effects ?? []));
      expect({ index, effects: [...new Set(effects.map(nameOf))].toSorted() }).toEqual({
        index,
        effects: [...explained].toSorted(),
      });
    }
  });
});

describe("the rows of the SPEC", () => {
  it("each row: some trace has it", () => {
    const reached = new Set(traceFiles.flatMap((file) => readTrace(file).steps.flatMap((step) => step.rows)));
    expect(rows.size).toBeGreaterThan(60);
    expect([...rows.keys()].filter((id) => !reached.has(id))).toEqual([]);
  });
});
