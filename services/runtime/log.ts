/** Logs: one wide JSON line per unit of work on standard output, secrets taken out before they are written. */
import { type Logger, pino, stdSerializers, stdTimeFunctions } from "pino";

export type Log = Logger;
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Fields that are never written, at the top of a line and down to two objects below. `code` is an enrollment code. */
const SECRET_FIELDS = ["authorization", "cookie", "credential", "token", "password", "code", "secret"] as const;

/** A log of one service. An error goes in as `err`; its `code` is written as `errorCode`, because `code` is taken for a secret. */
export function createLog(options: { readonly service: string; readonly level: LogLevel }): Log {
  return pino({
    level: options.level,
    base: { process: options.service, pid: process.pid },
    formatters: { level: (label) => ({ level: label }) },
    timestamp: stdTimeFunctions.isoTime,
    serializers: { err: serializeError },
    redact: { paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]), censor: "[redacted]" },
  });
}

function serializeError(error: Error): object {
  const { code, ...fields } = stdSerializers.err(error) as { readonly code?: unknown };
  return code === undefined ? fields : { errorCode: code, ...fields };
}
