import type { Step, StepControl, StopStep } from "./supervisor.ts";

/**
 * One step out of several that do not need one another: they start side by side, and stop one after the other, the last
 * named first. When one does not start, the others are stopped and its error is the step's.
 */
export function together(name: string, steps: readonly Step[]): Step {
  return {
    name,
    start: async (control: StepControl) => {
      const results = await Promise.allSettled(steps.map((step) => step.start(control)));
      const stops = results.flatMap((result): StopStep[] =>
        result.status === "fulfilled" && result.value !== undefined ? [result.value] : [],
      );
      const stopAll: StopStep = async (immediately) => {
        for (const stop of stops.toReversed()) await stop(immediately);
      };
      const failed = results.find((result) => result.status === "rejected");
      if (failed === undefined) return stopAll;
      await stopAll(new AbortController().signal);
      throw failed.reason;
    },
  };
}
