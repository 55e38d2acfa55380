/**
 * Bounds the log lines about errors: anybody can cause them, in any number. In each window the first lines of a code are
 * written and the others are counted; the window ends with one summary line for each code that has left out any.
 */
import { LOG_LIMITS } from "./limits.ts";

type Limits = Readonly<Record<keyof typeof LOG_LIMITS, number>>;

/** Who caused a line: a caller who is not known, a known device or person, or a fault inside. */
export type Cause = "unknown_caller" | "known_caller" | "fault";

/** What a line is counted by. Each value comes from a closed list, but for the caller's id. */
export interface ErrorLine {
  readonly level: string;
  readonly message: string;
  /** The error's code; empty when it has none. */
  readonly code: string;
  readonly cause: Cause;
  /** The known caller's id. */
  readonly caller?: string;
}

/** The lines of one code that a window has left out. */
export interface LeftOut extends Omit<ErrorLine, "caller"> {
  readonly lines: number;
}

interface Counted {
  readonly line: Omit<ErrorLine, "caller">;
  readonly callers: Map<string, number>;
  written: number;
  leftOut: number;
}

/** Codes beyond the bound share this one. */
const OTHER = "other";
const CAUSES = { unknown_caller: 0, known_caller: 0, fault: 0 } as const satisfies Record<Cause, number>;

export class LineLimiter {
  readonly #report: (leftOut: LeftOut) => void;
  readonly #limits: Limits;
  readonly #counted = new Map<string, Counted>();
  #writtenInAll: Record<Cause, number> = { ...CAUSES };
  #windowEndsAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #leftOutInAll = 0;

  /** Other limits only in tests. */
  constructor(report: (leftOut: LeftOut) => void, limits: Limits = LOG_LIMITS) {
    this.#report = report;
    this.#limits = limits;
  }

  /** Lines that were left out since the start. */
  get leftOut(): number {
    return this.#leftOutInAll;
  }

  /** Whether the line is written. */
  admits(line: ErrorLine, nowMs: number): boolean {
    if (nowMs >= this.#windowEndsAtMs) {
      this.endWindow();
      this.#windowEndsAtMs = nowMs + this.#limits.windowMs;
    }
    const counted = this.#find(line);
    if (this.#hasRoom(counted, line)) {
      counted.written += 1;
      this.#writtenInAll[line.cause] += 1;
      return true;
    }
    counted.leftOut += 1;
    this.#leftOutInAll += 1;
    // A flood may end before the window does; its summary is written all the same.
    this.#timer ??= setTimeout(() => this.endWindow(), this.#windowEndsAtMs - nowMs).unref();
    return false;
  }

  /** Reports what was left out and starts to count again. */
  endWindow(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#windowEndsAtMs = Number.NEGATIVE_INFINITY;
    const ended = [...this.#counted.values()];
    this.#counted.clear();
    this.#writtenInAll = { ...CAUSES };
    for (const { line, leftOut } of ended) if (leftOut > 0) this.#report({ ...line, lines: leftOut });
  }

  #find({ level, message, code, cause }: ErrorLine): Counted {
    const key = `${cause} ${level} ${code} ${message}`;
    const known = this.#counted.get(key);
    if (known !== undefined) return known;
    const isFull = this.#counted.size >= this.#limits.codes;
    const line = isFull ? { level, message: OTHER, code: OTHER, cause } : { level, message, code, cause };
    const shared = `${cause} ${level} ${OTHER}`;
    const counted = (isFull ? this.#counted.get(shared) : undefined) ?? newCount(line);
    this.#counted.set(isFull ? shared : key, counted);
    return counted;
  }

  #hasRoom(counted: Counted, { cause, caller = "" }: ErrorLine): boolean {
    const limits = this.#limits;
    switch (cause) {
      case "unknown_caller":
        return (
          counted.written < limits.unknownCallerLines &&
          this.#writtenInAll.unknown_caller < limits.unknownCallerLinesInAll
        );
      case "fault":
        return counted.written < limits.faultLines && this.#writtenInAll.fault < limits.faultLinesInAll;
      case "known_caller": {
        const byCaller = counted.callers.get(caller) ?? 0;
        if (byCaller >= limits.knownCallerLines) return false;
        if (counted.written >= limits.knownCallersLines) return false;
        if (this.#writtenInAll.known_caller >= limits.knownCallersLinesInAll) return false;
        counted.callers.set(caller, byCaller + 1);
        return true;
      }
    }
  }
}

function newCount(line: Omit<ErrorLine, "caller">): Counted {
  return { line, callers: new Map(), written: 0, leftOut: 0 };
}
