/**
 * Logs: one wide JSON line per unit of work on standard output, secrets taken out before they are written. A line never
 * waits for its reader (`log-output.ts`), and lines about errors are bounded (`line-limiter.ts`).
 */
import { getSystemErrorMap } from "node:util";
import { type LogFn, type Logger, pino, stdSerializers, stdTimeFunctions } from "pino";
import { LOG_LIMITS } from "./limits.ts";
import { type ErrorLine, type LeftOut, LineLimiter } from "./line-limiter.ts";
import { LogOutput, standardOutput, writeLast } from "./log-output.ts";
import { printableJson } from "./printable.ts";
import { currentRequestId } from "./request-context.ts";

export type Log = Logger;
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Fields that are never written, at the top of a line and down to two objects below. `code` may be an enrollment code. */
const SECRET_FIELDS = ["authorization", "cookie", "credential", "token", "password", "code", "secret"] as const;
/** Error codes: words, with or without underscores, SQL states, and those of systems. An enrollment code has ten characters. */
const ERROR_CODE =
  /^(?:[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z]{2,9}|[a-z]{11,40}|ERR_[A-Z0-9_]+|E[A-Z_0-9]{2,8}|[0-9A-Z]{5})$/;
const SYSTEM_CODES: ReadonlySet<string> = new Set([...getSystemErrorMap().values()].map(([name]) => name));
const WARN = pino.levels.values["warn"] ?? 0;
const FATAL = pino.levels.values["fatal"] ?? 0;
const LEFT_OUT = "similar lines were left out";
/** The fields that name a known caller. */
const CALLER_FIELDS = ["userId", "deviceId", "consumerId"] as const;

/** The one output of this process; there is none until something logs. */
let output: LogOutput | undefined;
let limiter: LineLimiter | undefined;

/**
 * A log of one service. An error goes in as `err`; its `code` is written as `errorCode`, because `code` is taken for a
 * secret. A line with the field `refusal`, its error code, says what was not done for a caller: such lines are bounded as
 * those from `warn` on are.
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
          if (line === undefined || limiter === undefined || limiter.admits(line, Date.now()))
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

/** Writes what is left before the process ends; resolves after half a second at most. */
export async function flushLog(): Promise<void> {
  limiter?.endWindow();
  await output?.flush(LOG_LIMITS.flushMs);
}

function openOutput(base: object): LogOutput {
  const droppedLine = (count: number): string =>
    `${JSON.stringify({ level: "warn", time: new Date().toISOString(), ...base, dropped: count, msg: "log lines were dropped" })}\n`;
  const opened = new LogOutput({ sink: standardOutput(), droppedLine });
  process.once("exit", () => writeLast(opened));
  return opened;
}

function reportLeftOut(log: Log, { level, message, code, cause, lines }: LeftOut): void {
  const fields = { lines, of: message, ...(code === "" ? {} : { refusalOrError: code }), cause };
  log[level as "warn"](fields, LEFT_OUT);
}

/** The fields by which a line is counted. */
interface CountedFields extends Readonly<Partial<Record<(typeof CALLER_FIELDS)[number], number | null>>> {
  readonly refusal?: string;
  readonly err?: unknown;
}

/** What a line is counted by; undefined for a line that is written in any case. */
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

/** The request that is worked on; a line may name another one. */
function requestFields(): object {
  const requestId = currentRequestId();
  return requestId === undefined ? {} : { requestId };
}

/** What is written in place of a secret; an error code is none. */
function censor(value: unknown, path: readonly string[]): unknown {
  return path.at(-1) === "code" && isErrorCode(value) ? value : "[redacted]";
}

function isErrorCode(value: unknown): boolean {
  return typeof value === "string" && (ERROR_CODE.test(value) || SYSTEM_CODES.has(value));
}

function serializeError(error: Error): object {
  const { code, ...fields } = stdSerializers.err(error) as { readonly code?: unknown };
  return code === undefined ? fields : { errorCode: code, ...fields };
}
