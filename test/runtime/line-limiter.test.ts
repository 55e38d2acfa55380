/** Which log lines about errors are written, and that all others are counted. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LOG_LIMITS } from "../../services/runtime/limits.ts";
import { type ErrorLine, type LeftOut, LineLimiter } from "../../services/runtime/log.ts";

const LIMITS = {
  ...LOG_LIMITS,
  windowMs: 1_000,
  unknownCallerLines: 2,
  knownCallerLines: 2,
  knownCallersLines: 3,
  faultLines: 2,
  unknownCallerLinesInAll: 5,
  knownCallersLinesInAll: 5,
  faultLinesInAll: 5,
  codes: 3,
};
const unknown: ErrorLine = { level: "info", message: "request", code: "throttled", cause: "unknown_caller" };
const known = (caller: string, code = "conflict"): ErrorLine => ({ ...unknown, code, cause: "known_caller", caller });

let reports: LeftOut[] = [];
let limiter: LineLimiter;
beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
  reports = [];
  limiter = new LineLimiter((leftOut) => reports.push(leftOut), LIMITS);
});
afterEach(() => vi.useRealTimers());

const admitted = (lines: readonly ErrorLine[]): boolean[] => lines.map((line) => limiter.admits(line, Date.now()));

describe("lines of unknown callers", () => {
  test("within the limit of their code: all are written, and nothing is reported", () => {
    expect(admitted([unknown, { ...unknown, code: "invalid_request" }])).toEqual([true, true]);
    vi.advanceTimersByTime(LIMITS.windowMs);
    expect(reports).toEqual([]);
  });

  test("beyond the limit of their code: counted, and one line reports the count when the window ends", () => {
    expect(admitted([unknown, unknown, unknown, unknown])).toEqual([true, true, false, false]);
    vi.advanceTimersByTime(LIMITS.windowMs - 1);
    expect(reports).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(reports).toEqual([{ ...unknown, lines: 2 }]);
    expect(limiter.leftOut).toBe(2);
    expect(admitted([unknown, unknown, unknown])).toEqual([true, true, false]);
  });

  test("of many codes: limited in total, and codes beyond a number share one count", () => {
    const codes = ["a", "b", "c", "d", "e", "f", "g"].map((code) => ({ ...unknown, code }));
    expect(admitted(codes)).toEqual([true, true, true, true, true, false, false]);
    limiter.endWindow();
    expect(reports).toEqual([{ ...unknown, message: "other", code: "other", lines: 2 }]);
  });
});

describe("lines of known callers", () => {
  test("of one broken device, after many lines of unknown callers: lines of another device are written", () => {
    admitted(Array.from({ length: 100 }, () => unknown));
    expect(admitted([known("a"), known("a"), known("a"), known("b"), known("c")])).toEqual([
      true,
      true,
      false,
      true,
      false,
    ]);
  });

  test("of many codes: limited in total", () => {
    const lines = ["1", "2", "3", "4", "5", "6"].map((code) => known(code, code));
    expect(admitted(lines)).toEqual([true, true, true, true, true, false]);
  });
});

describe("lines about faults", () => {
  test("with the same message: limited by the error's code", () => {
    const fault: ErrorLine = { level: "error", message: "a request failed", code: "57P03", cause: "fault" };
    const other = { ...fault, code: "ENOSPC" };
    expect(admitted([fault, fault, fault, other])).toEqual([true, true, false, true]);
    limiter.endWindow();
    expect(reports).toEqual([{ ...fault, lines: 1 }]);
  });

  test("1,000 lines: each is written or counted", () => {
    const lines = Array.from({ length: 1_000 }, (_, index): ErrorLine => {
      return { level: "warn", message: `message ${index % 7}`, code: String(index % 5), cause: "fault" };
    });
    const written = admitted(lines).filter(Boolean).length;
    limiter.endWindow();
    expect(written + reports.reduce((sum, { lines: count }) => sum + count, 0)).toBe(1_000);
    expect(written).toBe(LIMITS.faultLinesInAll);
  });
});
