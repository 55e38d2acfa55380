import { appendFileSync } from "node:fs";
import { inspect } from "node:util";
import { errorCode, UserError } from "../services/runtime/user-error.ts";

/**
 * Prints one sentence about an error. An error that nobody foresaw is printed with its code only; what a programmer needs
 * goes to the log file.
 */
export function reportError(error: unknown, logFile: string | undefined): void {
  const isWritten = logFile !== undefined && writeDetails(error, logFile);
  const details = isWritten ? `details are in ${logFile}` : "there is no log, because no data folder is open";
  const sentence =
    error instanceof UserError ? error.message : `Something unexpected went wrong; ${details} (${errorCode(error)}).`;
  process.stderr.write(`${sentence}\n`);
}

function writeDetails(error: unknown, logFile: string): boolean {
  try {
    appendFileSync(logFile, `${new Date().toISOString()} ${inspect(error, { depth: 5 })}\n`, { mode: 0o600 });
    return true;
  } catch {
    return false;
  }
}
