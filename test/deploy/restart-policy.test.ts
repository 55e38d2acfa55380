/** When a part that ended by itself is started again, and when it is abandoned. */
import { describe, expect, test } from "vitest";
import { RestartPolicy } from "../../deploy/keep-running.ts";
import { deployLimits } from "../../deploy/limits.ts";

const { restartFirstMs, restartMaxMs, restartQuietMs, restartMaxEnds, restartWindowMs } = deployLimits;

describe("the restart policy", () => {
  test("doubles the pause with each end up to its longest, and abandons the part at the last end that the limit allows", () => {
    const policy = new RestartPolicy(0);
    let nowMs = 0;
    const pauses: number[] = [];
    for (let end = 1; end < restartMaxEnds; end += 1) {
      const verdict = policy.ended(nowMs);
      if (!("afterMs" in verdict)) throw new Error(`abandoned after ${end} ends`);
      pauses.push(verdict.afterMs);
      nowMs += verdict.afterMs + 100;
      policy.up(nowMs);
    }
    expect(pauses).toEqual([200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000]);
    expect(policy.ended(nowMs)).toEqual({ abandonedBecause: "ended 10 times within 5 minutes" });
  });

  test("begins with the first pause again after a quiet life", () => {
    const policy = new RestartPolicy(0);
    expect(policy.ended(10)).toEqual({ afterMs: restartFirstMs });
    policy.up(1_000);
    expect(policy.ended(1_000 + restartQuietMs - 1)).toEqual({ afterMs: 2 * restartFirstMs });
    policy.up(200_000);
    expect(policy.ended(200_000 + restartQuietMs)).toEqual({ afterMs: restartFirstMs });
  });

  test("forgets ends of long ago, so that one a day goes on for ever", () => {
    const policy = new RestartPolicy(0);
    for (let day = 1; day <= 3 * restartMaxEnds; day += 1) {
      expect(policy.ended(day * restartWindowMs)).toEqual({ afterMs: restartFirstMs });
      policy.up(day * restartWindowMs + 1);
    }
  });

  test("abandons a part that takes so long over each failing start that it never ends often enough", () => {
    const policy = new RestartPolicy(0);
    const startMs = 60_000;
    const verdicts: unknown[] = [];
    for (let nowMs = 0; nowMs <= restartWindowMs; nowMs += startMs) verdicts.push(policy.ended(nowMs));
    expect(verdicts.at(-2)).toHaveProperty("afterMs");
    expect(verdicts.at(-1)).toEqual({ abandonedBecause: "could not be started again for 5 minutes" });
    expect(restartMaxMs).toBeLessThan(startMs);
  });
});
