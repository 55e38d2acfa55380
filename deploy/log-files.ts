/** The log files of `npm start`: which there are, how large they may become together, and how they are written. */
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
import { createStream, type RotatingFileStream } from "rotating-file-stream";
import { within } from "../services/runtime/repeat.ts";
import { errorCode } from "../services/runtime/user-error.ts";
import { deployLimits } from "./limits.ts";

export const LINE_FEED = 10;

/** The parts that have a log, below `logs` of the data folder. */
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
  /** The size at which the file is rotated; `deployLimits.logFileBytes` unless set. */
  logFileBytes?: number;
}

/** The log of one part; all of them together stay within `logMaxBytes`. */
export function logOf(part: LogPart, options: { dataDir: string; logMaxBytes: number }): LogSpec {
  const files = LOG_PARTS.length * deployLimits.logFiles;
  // A file is rotated after the write that makes it too large.
  const logFileBytes = Math.floor(options.logMaxBytes / files) - deployLimits.logWriteBytes;
  return { logFile: join(options.dataDir, "logs", `${part}.log`), logFileBytes };
}

/** The size at which a file of a log is rotated. */
export function fileBytesOf({ logFileBytes }: LogSpec): number {
  return logFileBytes ?? deployLimits.logFileBytes;
}

/** Removes the oldest files of a log beyond its limit: the limit may have been higher when they were written. */
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

/** The end of a log file, from `fromByte` on; empty without a file. A shorter file was rotated and is read from its start. */
export function logTail(path: string, fromByte: number): string {
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

/**
 * The log of one part, rotated by size while it grows. No caller waits for it: when the disk is slow, full or broken, lines
 * are dropped and counted. One line in the file reports how many as soon as the file can be written again.
 */
export class RotatingLog {
  readonly #spec: LogSpec;
  #stream: RotatingFileStream | undefined;
  #openAgainAtMs = Number.NEGATIVE_INFINITY;
  #missing = 0;
  #reason = "";

  constructor(spec: LogSpec) {
    this.#spec = spec;
  }

  /** Takes whole lines. Never throws, never waits. */
  write(lines: Uint8Array): void {
    const stream = this.#open();
    if (stream === undefined) return this.#lose(lines);
    if (stream.writableLength + lines.length > deployLimits.logWaitingBytes) {
      this.#reason = "slow_disk";
      return this.#lose(lines);
    }
    if (this.#missing > 0) this.#reportMissing(stream);
    stream.write(lines, (error) => {
      if (error) this.#lose(lines);
    });
  }

  /** Resolves when everything is written and the file is closed, or after a second. */
  async close(): Promise<void> {
    const stream = this.#stream;
    this.#stream = undefined;
    this.#openAgainAtMs = Number.POSITIVE_INFINITY;
    if (stream === undefined) return;
    if (this.#missing > 0) this.#reportMissing(stream);
    const closed = new Promise<void>((resolve) => {
      stream.once("close", resolve);
      stream.end();
    });
    await logIsClosed(closed);
  }

  #open(): RotatingFileStream | undefined {
    if (this.#stream !== undefined || performance.now() < this.#openAgainAtMs) return this.#stream;
    const { logFile } = this.#spec;
    try {
      trimLog(this.#spec);
      const stream = createStream(basename(logFile), {
        path: dirname(logFile),
        size: `${fileBytesOf(this.#spec)}B`,
        rotate: deployLimits.logFiles - 1,
        mode: 0o600,
      });
      // After an error the stream is never used again: a later write opens a new stream, when there may be space.
      stream.on("error", (error) => {
        if (this.#stream === stream) this.#failed(error);
      });
      this.#stream = stream;
    } catch (error) {
      this.#failed(error);
    }
    return this.#stream;
  }

  #failed(error: unknown): void {
    this.#stream = undefined;
    this.#reason = errorCode(error);
    if (this.#openAgainAtMs < Number.POSITIVE_INFINITY) {
      this.#openAgainAtMs = performance.now() + deployLimits.logRetryMs;
    }
  }

  #reportMissing(stream: RotatingFileStream): void {
    const count = this.#missing;
    this.#missing = 0;
    const facts = { level: "warn", time: new Date().toISOString(), process: "npm start", reason: this.#reason };
    const line = JSON.stringify({ ...facts, lines: count, msg: "lines are missing here: they could not be written" });
    stream.write(`${line}\n`, (error) => {
      if (error) this.#missing += count;
    });
  }

  #lose(lines: Uint8Array): void {
    for (const byte of lines) if (byte === LINE_FEED) this.#missing += 1;
  }
}

/** Waits until a log is closed, for at most `deployLimits.logCloseMs`. */
export async function logIsClosed(closed: Promise<unknown>): Promise<void> {
  await within(closed, deployLimits.logCloseMs);
}
