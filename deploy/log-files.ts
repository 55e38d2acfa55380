/** Which log files `npm start` has, and how large they may become together. */
import {
  appendFileSync,
  closeSync,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { deployLimits } from "./limits.ts";

/** The parts that have a log of their own, below `logs` of the data folder. */
export const LOG_PARTS = [
  "start",
  "nats-server",
  "postgres",
  "services",
  "webhook-signer",
  "sandbox-provider",
  "stations",
  "gateway",
  "virtual-companion",
  "virtual-display",
] as const;
export type LogPart = (typeof LOG_PARTS)[number];

/** One log: a file that is written, and older ones beside it. */
export interface LogSpec {
  logFile: string;
  /** At this size the file is moved aside; `deployLimits.logFileBytes` where nothing else is said. */
  logFileBytes?: number;
}

/** The log of one part; all of them together stay within `logMaxBytes`. */
export function logOf(part: LogPart, options: { dataDir: string; logMaxBytes: number }): LogSpec {
  const files = LOG_PARTS.length * deployLimits.logFiles;
  // A file is moved aside after the write that makes it too large.
  const logFileBytes = Math.floor(options.logMaxBytes / files) - deployLimits.logWriteBytes;
  return { logFile: join(options.dataDir, "logs", `${part}.log`), logFileBytes };
}

/** The size at which a file of a log is moved aside. */
export function fileBytesOf({ logFileBytes }: LogSpec): number {
  return logFileBytes ?? deployLimits.logFileBytes;
}

/** Removes the oldest files of a log beyond what it may have: they were written when more was allowed. */
export function trimLog(log: LogSpec): void {
  const folder = dirname(log.logFile);
  const older = readdirSync(folder)
    .filter((name) => name.startsWith(`${basename(log.logFile)}.`))
    .map((name) => ({ file: join(folder, name), stats: statSync(join(folder, name)) }))
    .toSorted((one, other) => other.stats.mtimeMs - one.stats.mtimeMs);
  let leftBytes = (deployLimits.logFiles - 1) * (fileBytesOf(log) + deployLimits.logWriteBytes);
  for (const { file, stats } of older) {
    leftBytes -= stats.size;
    if (leftBytes < 0) rmSync(file, { force: true });
  }
}

/** Appends to a log that no process has open. Returns false when that is not possible, such as on a full disk. */
export function appendToLog(log: LogSpec, text: string): boolean {
  const { logFile } = log;
  try {
    if (logSize(logFile) > fileBytesOf(log)) renameSync(logFile, `${logFile}.1`);
    appendFileSync(logFile, text, { mode: 0o600 });
    return true;
  } catch {
    return false;
  }
}

/** The last lines of a log file, from `fromByte` on; empty when there is none. A file that is shorter was rotated. */
export function logTail(path: string, fromByte = 0): string {
  try {
    const file = openSync(path, "r");
    const { size } = fstatSync(file);
    const start = Math.max(fromByte > size ? 0 : fromByte, size - deployLimits.logTailBytes);
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
