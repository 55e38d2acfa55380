/** What a child process prints: read all the time, so that the child never waits, and kept in its log. */
import type { ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { deployLimits } from "./limits.ts";
import type { LogSpec } from "./log-files.ts";
import { RotatingLog } from "./rotating-log.ts";

const LINE_FEED = 10;

export interface ChildOutput {
  /** The last of what it has printed. */
  tail: () => string;
  /** Resolves when it has ended and everything that it printed is in its log. Never rejects. */
  kept: Promise<void>;
}

/** Reads what a child prints. Without a log only its last lines are kept, in memory. */
export function keepOutput(child: ChildProcess, log: LogSpec | undefined): ChildOutput {
  const file = log === undefined ? undefined : new RotatingLog(log);
  let tail = Buffer.alloc(0);
  const keep = (lines: Uint8Array): void => {
    tail = Buffer.concat([tail, lines]).subarray(-deployLimits.logTailBytes);
    file?.write(lines);
  };
  const streams = [child.stdout, child.stderr].filter((stream) => stream !== null);
  const allRead = Promise.all(streams.map((stream) => readLines(stream, keep)));
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  const kept = (async () => {
    await exited;
    // A process that the child has started may hold the pipe open for longer.
    const late = new AbortController();
    await Promise.race([allRead, delay(deployLimits.logCloseMs, undefined, { signal: late.signal }).catch(() => {})]);
    late.abort();
    await file?.close();
  })();
  return { tail: () => tail.toString("utf8"), kept };
}

/** Hands whole lines on as they come, and at the end what has no line feed. */
function readLines(stream: Readable, keep: (lines: Uint8Array) => void): Promise<void> {
  let started: Buffer[] = [];
  let startedBytes = 0;
  const handOn = (end: Uint8Array): void => {
    const lines = Buffer.concat([...started, end]);
    started = [];
    startedBytes = 0;
    if (lines.length > 0) keep(lines);
  };
  return new Promise((resolve) => {
    stream.on("data", (chunk: Buffer) => {
      const end = chunk.lastIndexOf(LINE_FEED) + 1;
      if (end > 0) handOn(chunk.subarray(0, end));
      const rest = chunk.subarray(end);
      if (rest.length === 0) return;
      started.push(rest);
      startedBytes += rest.length;
      // A line without an end is no line.
      if (startedBytes > deployLimits.logWriteBytes / 2) handOn(Buffer.from("\n"));
    });
    stream.once("error", () => undefined);
    stream.once("close", () => {
      if (startedBytes > 0) handOn(Buffer.from("\n"));
      resolve();
    });
  });
}
