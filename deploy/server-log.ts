import { closeSync, fstatSync, openSync, readSync, renameSync, statSync } from "node:fs";
import { deployLimits } from "./limits.ts";

/** Opens a log file for appending and returns its descriptor. A large one is moved to `<path>.1` first. */
export function openLog(path: string): number {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size > deployLimits.logMaxBytes) renameSync(path, `${path}.1`);
  return openSync(path, "a", 0o600);
}

/** The last lines of a log file, from `fromByte` on; empty when there is none. */
export function logTail(path: string, fromByte = 0): string {
  try {
    const file = openSync(path, "r");
    const size = fstatSync(file).size;
    const start = Math.max(fromByte, size - deployLimits.logTailBytes);
    const buffer = Buffer.alloc(Math.max(0, size - start));
    readSync(file, buffer, 0, buffer.length, start);
    closeSync(file);
    return buffer.toString("utf8");
  } catch {
    return "";
  }
}

/** The length of a log file in bytes, to read later only what one run wrote. */
export function logSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
