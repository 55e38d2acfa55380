/**
 * The log file of one part, rotated by size while it grows. Nothing waits for it: when the disk is slow, full or dead,
 * lines are dropped and counted, and one line in the file says how many as soon as it can be written again.
 */
import { basename, dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createStream, type RotatingFileStream } from "rotating-file-stream";
import { errorCode } from "../services/runtime/user-error.ts";
import { deployLimits } from "./limits.ts";
import { fileBytesOf, type LogSpec, trimLog } from "./log-files.ts";

const LINE_FEED = 10;

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
    const late = new AbortController();
    await Promise.race([closed, delay(deployLimits.logCloseMs, undefined, { signal: late.signal }).catch(() => {})]);
    late.abort();
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
      // After an error the stream is never used again: another one opens the file when there may be space.
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
