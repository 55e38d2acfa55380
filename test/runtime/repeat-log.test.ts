import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { repeat } from "../../services/runtime/repeat.ts";

/** The lines about these turns, one a second; null: the turn succeeds, as one does that has nothing to do. */
async function linesOf(turns: readonly (string | null)[]): Promise<readonly string[]> {
  const lines: string[] = [];
  const log = { warn: ({ err }: { err?: Error }, message: string) => void lines.push(`${message}: ${err?.message}`) };
  const left = turns.values();
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const repeated = repeat({ everyMs: 0, what: "the work", log }, async () => {
    vi.advanceTimersByTime(1_000);
    const { value: reason, done } = left.next();
    if (done === true) end();
    if (typeof reason === "string") throw new Error(reason);
  });
  await over;
  await repeated.stop();
  return lines;
}

const times = (count: number, ...turns: readonly (string | null)[]): readonly (string | null)[] =>
  Array.from({ length: count }, () => turns).flat();

describe("work that is repeated and fails", () => {
  beforeEach(() => {
    // The pauses between the turns are real.
    vi.useFakeTimers({ toFake: ["performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("for one reason, for ten minutes: one line", async () => {
    expect(await linesOf(times(600, "refused"))).toEqual(["the work has failed: refused"]);
  });

  it("for two reasons in turn: one line for each of them in a minute", async () => {
    const lines = await linesOf(times(30, "refused", "not dialled"));
    expect(lines).toEqual(["the work has failed: refused", "the work has failed: not dialled"]);
  });

  it("at every second turn, because the others have nothing to do: one line in a minute", async () => {
    expect(await linesOf(times(29, "refused", null))).toHaveLength(1);
  });

  it("again for the same reason, a minute after it worked again: another line", async () => {
    expect(await linesOf(["refused", ...times(61, null), "refused"])).toHaveLength(2);
  });
});
