/** Steps that start side by side still stop one after the other, and none is left over when another does not start. */
import { expect, test } from "vitest";
import { type Step, type StepControl, together } from "../../deploy/supervisor.ts";

const control: StepControl = { fail: () => undefined, stopping: new AbortController().signal };

function step(name: string, happened: string[], error?: Error): Step {
  return {
    name,
    start: async () => {
      happened.push(`${name} starts`);
      await Promise.resolve();
      if (error !== undefined) throw error;
      return async () => {
        happened.push(`${name} stops`);
      };
    },
  };
}

test("they start side by side and stop in reverse", async () => {
  const happened: string[] = [];
  const stop = await together("all", [step("a", happened), step("b", happened)]).start(control);
  await stop?.(new AbortController().signal);
  expect(happened).toEqual(["a starts", "b starts", "b stops", "a stops"]);
});

test("one that does not start takes the others with it", async () => {
  const happened: string[] = [];
  const steps = [step("a", happened), step("b", happened, new Error("taken")), step("c", happened)];
  await expect(together("all", steps).start(control)).rejects.toThrow("taken");
  expect(happened).toEqual(["a starts", "b starts", "c starts", "c stops", "a stops"]);
});
