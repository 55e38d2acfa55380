import { inspect } from "node:util";
import { cannotGoOn } from "../services/runtime/fault.ts";
import { errorCode, UserError } from "../services/runtime/user-error.ts";
import { appendToLog, type LogSpec } from "./log-files.ts";

/**
 * Prints one sentence about an error: its own, or the words for its code. What a programmer needs goes to the log file.
 */
export function reportError(error: unknown, log: LogSpec | undefined): void {
  const text = `${new Date().toISOString()} ${inspect(error, { depth: 5 })}\n`;
  const isWritten = log !== undefined && appendToLog(log, text);
  const details = isWritten ? `details are in ${log.logFile}` : "there is no log, because none can be written";
  const sentence =
    error instanceof UserError
      ? error.message
      : (cannotGoOn("The start", error) ?? `Something unexpected went wrong; ${details} (${errorCode(error)}).`);
  process.stderr.write(`${sentence}\n`);
}
