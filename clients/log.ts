/** The log of a virtual device: one JSON line per event on standard output, with the fields that the services' logs have. */
import { type Logger, pino, stdTimeFunctions } from "pino";

/** Fields that are never written; `code` is an enrollment code. */
const SECRET_FIELDS = ["credential", "code", "authorization"];

export function createDeviceLog(options: { readonly name: string; readonly level: string }): Logger {
  return pino({
    level: options.level,
    base: { process: options.name, pid: process.pid },
    formatters: { level: (label) => ({ level: label }) },
    timestamp: stdTimeFunctions.isoTime,
    redact: { paths: SECRET_FIELDS, censor: "[redacted]" },
  });
}
