/**
 * The log of a virtual device: one JSON line per event on standard output, with the fields that the services' logs have.
 * A line that standard output does not take is dropped: no reader holds up a device.
 */
import { type Logger, pino, stdTimeFunctions } from "pino";
import { clientLimits } from "./limits.ts";

export interface DeviceLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Fields that are never written; `code` is an enrollment code. */
const SECRET_FIELDS = ["credential", "code", "authorization"];

export function createDeviceLog(options: { readonly name: string; readonly level: string }): Logger {
  const settings = {
    level: options.level,
    base: { process: options.name, pid: process.pid },
    formatters: { level: (label: string) => ({ level: label }) },
    timestamp: stdTimeFunctions.isoTime,
    redact: { paths: SECRET_FIELDS, censor: "[redacted]" },
  };
  return pino(settings, { write: writeLine });
}

let hasListener = false;

function writeLine(line: string): void {
  // A reader that is gone, or a full disk, is an error event; without a listener it would end the process.
  if (!hasListener) process.stdout.on("error", () => undefined);
  hasListener = true;
  if (process.stdout.writableLength < clientLimits.logWaitingBytes) process.stdout.write(line);
}
