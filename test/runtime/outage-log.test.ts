import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type OutageLines, OutageLog } from "../../services/runtime/repeat.ts";

const lines: object[] = [];
const log: OutageLines = {
  warn: (fields: object, message: string) => void lines.push({ ...fields, message }),
  info: (fields: object, message: string) => void lines.push({ ...fields, message }),
};

describe("the log of an outage", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] });
    lines.length = 0;
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("attempts that fail for one reason: one line at the beginning, one each minute, and one at the end", () => {
    const outage = new OutageLog(log, "the copy");
    for (let second = 0; second < 90; second += 1) {
      outage.failed(new Error("no answer"));
      vi.advanceTimersByTime(1_000);
    }
    outage.worked();
    outage.worked();
    expect(lines).toEqual([
      { reason: "no answer", attempts: 1, message: "the copy does not work" },
      { reason: "no answer", attempts: 61, message: "the copy does not work" },
      { afterMs: 90_000, attempts: 90, message: "the copy works again" },
    ]);
  });

  it("another reason: one line more", () => {
    const outage = new OutageLog(log, "the copy");
    outage.failed(new Error("no answer"));
    outage.failed("no quorum");
    expect(lines).toHaveLength(2);
  });

  it("two reasons in turn: one line for each of them in a minute", () => {
    const outage = new OutageLog(log, "the copy");
    for (let second = 0; second < 59; second += 1) {
      outage.failed(second % 2 === 0 ? "no answer" : "no quorum");
      vi.advanceTimersByTime(1_000);
    }
    expect(lines).toHaveLength(2);
  });
});
