/**
 * Logs: one wide JSON line per unit of work on standard output, without secrets. The process never waits for the reader of
 * a line (`log-output.ts`). `LineLimiter` bounds the number of lines about errors.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { getSystemErrorMap } from "node:util";
import { type LogFn, type Logger, pino, stdSerializers, stdTimeFunctions } from "pino";
import { LOG_LIMITS } from "./limits.ts";
import { LogOutput, standardOutput, writeLast } from "./log-output.ts";
import { printableJson } from "./printable.ts";

/**
 * The id of the current request, for each log line about it. The id follows the work through all its asynchronous steps,
 * and from process to process in a header of the bus (`bus/deadline.ts`).
 */
const requestIds = new AsyncLocalStorage<string | undefined>();

/** Undefined where the current work belongs to no request. */
export function currentRequestId(): string | undefined {
  return requestIds.getStore();
}

/** Whether a client's id is short and has only letters, digits and a few marks: it goes unchanged into headers and the log. */
export const isRequestId = (id: string): boolean => /^[\w.:/+=-]{1,64}$/.test(id);

/** Runs `work` for the request with this id; with undefined, for no request. */
export function forRequest<T>(requestId: string | undefined, work: () => T): T {
  // A process without request ids pays nothing: Node tracks asynchronous work only after the first `run`.
  if (requestId === undefined && requestIds.getStore() === undefined) return work();
  return requestIds.run(requestId, work);
}

export type Log = Logger;

/** The part of `Log` that writes lines about the course of work. */
export interface LineLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
type LogLevel = (typeof LOG_LEVELS)[number];

/** Fields whose values are redacted, at the top of a line and in two levels of objects below. `code` may be an enrollment code. */
const SECRET_FIELDS = ["authorization", "cookie", "credential", "token", "password", "code", "secret"] as const;
/** Error codes: words, codes of Node and of systems, SQL states. No match looks like an enrollment code. */
const ERROR_CODE =
  /^(?:[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z]{2,9}|[a-z]{11,40}|ERR_[A-Z0-9_]+|E[A-Z_0-9]{2,8}|[0-9A-Z]{5})$/;
/** Smaller integers are error codes: of closed sockets, of HTTP, of JetStream. */
const NUMERIC_CODES_BELOW = 100_000;
const SYSTEM_CODES: ReadonlySet<string> = new Set([...getSystemErrorMap().values()].map(([name]) => name));
const WARN = pino.levels.values["warn"] ?? 0;
const FATAL = pino.levels.values["fatal"] ?? 0;
const LEFT_OUT = "similar lines were left out";
/** The fields that name a known caller. */
const CALLER_FIELDS = ["userId", "deviceId", "consumerId"] as const;

/** The one output of this process; undefined until the first log line. */
let output: LogOutput | undefined;
let limiter: LineLimiter | undefined;

/**
 * Creates the log of one service. Pass an error as `err`. Its `code` becomes `errorCode`, and the codes of its causes become
 * `causeCodes`, because `code` counts as a secret. A line with the field `refusal` (an error code) reports what the service
 * did not do for a caller. `LineLimiter` bounds such lines, whatever their level, and all lines from `warn` on.
 */
export function createLog(options: { readonly service: string; readonly level: LogLevel }): Log {
  const base = { process: options.service, pid: process.pid };
  const log = pino(
    {
      level: options.level,
      base,
      formatters: { level: (label) => ({ level: label }) },
      timestamp: stdTimeFunctions.isoTime,
      serializers: { err: serializeError },
      mixin: requestFields,
      redact: { paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]), censor },
      hooks: {
        logMethod(inputs, method, level) {
          const line = errorLine(inputs, level);
          if (line === undefined || limiter === undefined || limiter.admits(line, performance.now()))
            method.apply(this, inputs);
        },
      },
    },
    // Text of a device or a provider must not mislead a person who reads the log in a terminal.
    { write: (line) => (output ??= openOutput(base)).write(printableJson(line)) },
  );
  limiter ??= new LineLimiter((leftOut) => reportLeftOut(log, leftOut));
  return log;
}

/** Lines that this process has not written since its start, by reason. */
export function lostLogLines(): Readonly<Record<"output" | "limit", number>> {
  return { output: output?.dropped ?? 0, limit: limiter?.leftOut ?? 0 };
}

/** Writes the waiting lines before the process ends. Resolves after `LOG_LIMITS.flushMs` at the latest. */
export async function flushLog(): Promise<void> {
  limiter?.endWindow();
  await output?.flush(LOG_LIMITS.flushMs);
}

function openOutput(base: object): LogOutput {
  const droppedLine = (count: number): string =>
    `${JSON.stringify({ level: "warn", time: new Date().toISOString(), ...base, dropped: count, msg: "log lines were dropped" })}\n`;
  const { sink, descriptor } = standardOutput();
  const opened = new LogOutput({ sink, droppedLine });
  process.once("exit", () => writeLast(opened, descriptor));
  return opened;
}

function reportLeftOut(log: Log, { level, message, code, cause, lines }: LeftOut): void {
  const fields = { lines, of: message, ...(code === "" ? {} : { refusalOrError: code }), cause };
  // A window may end during one request, but its lines are of several requests.
  forRequest(undefined, () => log[level as "warn"](fields, LEFT_OUT));
}

/** The fields by which `LineLimiter` counts a line. */
interface CountedFields extends Readonly<Partial<Record<(typeof CALLER_FIELDS)[number], number | null>>> {
  readonly refusal?: string;
  readonly err?: unknown;
}

/** The properties by which `LineLimiter` counts a line; undefined for a line that is always written. */
function errorLine(inputs: Parameters<LogFn>, level: number): ErrorLine | undefined {
  const [fields, message] = inputs as readonly unknown[];
  const facts: CountedFields = typeof fields === "object" && fields !== null ? fields : {};
  const { refusal } = facts;
  if ((level < WARN && refusal === undefined) || level >= FATAL || message === LEFT_OUT) return undefined;
  const line = { level: pino.levels.labels[level] ?? "warn", message: typeof message === "string" ? message : "" };
  if (refusal === undefined) return { ...line, code: codeOf(facts.err), cause: "fault" };
  const caller = CALLER_FIELDS.find((field) => typeof facts[field] === "number");
  if (caller === undefined) return { ...line, code: refusal, cause: "unknown_caller" };
  return { ...line, code: refusal, cause: "known_caller", caller: `${caller} ${facts[caller]}` };
}

function codeOf(error: unknown): string {
  const { code } = (typeof error === "object" && error !== null ? error : {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : "";
}

/** The id of the current request. A `requestId` among the fields of a line takes precedence. */
function requestFields(): object {
  const requestId = currentRequestId();
  return requestId === undefined ? {} : { requestId };
}

/** Replaces a secret. An error code in the field `code` is not a secret. */
function censor(value: unknown, path: readonly string[]): unknown {
  return path.at(-1) === "code" && isErrorCode(value) ? value : "[redacted]";
}

function isErrorCode(value: unknown): boolean {
  if (typeof value === "number") return Number.isInteger(value) && value < NUMERIC_CODES_BELOW;
  return typeof value === "string" && (ERROR_CODE.test(value) || SYSTEM_CODES.has(value));
}

/** `message` includes the messages of the causes; `causeCodes` has their codes. */
function serializeError(error: Error): object {
  const { code, ...fields } = stdSerializers.err(error) as { readonly code?: unknown };
  const causeCodes = causesOf(error).flatMap((cause) => ("code" in cause ? [cause.code] : []));
  return {
    ...(code === undefined ? {} : { errorCode: code }),
    ...(causeCodes.length === 0 ? {} : { causeCodes }),
    ...fields,
  };
}

function causesOf(error: Error): readonly Error[] {
  const causes = new Set<Error>();
  for (let { cause } = error; cause instanceof Error && !causes.has(cause); cause = cause.cause) causes.add(cause);
  return [...causes];
}

type Limits = Readonly<Record<keyof typeof LOG_LIMITS, number>>;

/** Who caused a line: an unknown caller, a known caller (a person, a device or a consumer), or an internal fault. */
type Cause = "unknown_caller" | "known_caller" | "fault";

/** The properties by which a line is counted. Each has a closed list of values, except the caller's id. */
export interface ErrorLine {
  readonly level: string;
  readonly message: string;
  /** The error's code; empty when it has none. */
  readonly code: string;
  readonly cause: Cause;
  /** The known caller's id. */
  readonly caller?: string;
}

/** The lines of one code that `LineLimiter` left out in a window. */
export interface LeftOut extends Omit<ErrorLine, "caller"> {
  readonly lines: number;
}

interface Counted {
  readonly line: Omit<ErrorLine, "caller">;
  readonly callers: Map<string, number>;
  written: number;
  leftOut: number;
}

/** Codes beyond `LOG_LIMITS.codes` are counted together under this name. */
const OTHER = "other";
const CAUSES = { unknown_caller: 0, known_caller: 0, fault: 0 } as const satisfies Record<Cause, number>;

/**
 * Bounds the log lines about errors, because a caller can cause any number of them. In each window it admits the first
 * lines of a code and counts the others. The window ends with one summary line for each code of which it left out lines.
 */
export class LineLimiter {
  readonly #report: (leftOut: LeftOut) => void;
  readonly #limits: Limits;
  readonly #counted = new Map<string, Counted>();
  #writtenInAll: Record<Cause, number> = { ...CAUSES };
  #windowEndsAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #leftOutInAll = 0;

  /** Only tests pass other limits. */
  constructor(report: (leftOut: LeftOut) => void, limits: Limits = LOG_LIMITS) {
    this.#report = report;
    this.#limits = limits;
  }

  /** The number of lines left out since the start. */
  get leftOut(): number {
    return this.#leftOutInAll;
  }

  /** Counts the line, and returns whether the log may write it. */
  admits(line: ErrorLine, nowMs: number): boolean {
    if (nowMs >= this.#windowEndsAtMs) {
      this.endWindow();
      this.#windowEndsAtMs = nowMs + this.#limits.windowMs;
    }
    const counted = this.#find(line);
    if (this.#hasRoom(counted, line)) {
      const { cause, caller = "" } = line;
      counted.written += 1;
      this.#writtenInAll[cause] += 1;
      if (cause === "known_caller") counted.callers.set(caller, (counted.callers.get(caller) ?? 0) + 1);
      return true;
    }
    counted.leftOut += 1;
    this.#leftOutInAll += 1;
    // The lines may stop before the window ends. The timer makes sure that their summary is written.
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
        return (
          byCaller < limits.knownCallerLines &&
          counted.written < limits.knownCallersLines &&
          this.#writtenInAll.known_caller < limits.knownCallersLinesInAll
        );
      }
    }
  }
}

function newCount(line: Omit<ErrorLine, "caller">): Counted {
  return { line, callers: new Map(), written: 0, leftOut: 0 };
}
