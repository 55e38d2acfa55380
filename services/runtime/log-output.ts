/**
 * Writes the log of a process to standard output without blocking the process. A line waits in memory until the reader
 * takes it. When the reader is slow, stalled or gone, or the disk is full, lines beyond a bound are dropped and
 * counted. When writing works again, one line reports how many were dropped.
 *
 *   log line ──► waiting lines (bounded) ──► one write at a time ──► pipe, terminal or file
 *                      │ full                        │ fails: pause
 *                      └──────► dropped, counted ◄───┘
 */
import { constants, fstatSync, openSync, writeSync, write as writeToDescriptor } from "node:fs";
import { isatty } from "node:tty";
import { LOG_LIMITS } from "./limits.ts";

const STANDARD_OUTPUT = 1;

/** Writes text and reports the error when it could not be written. */
export type Sink = (text: string, done: (error: Error | null | undefined) => void) => void;

type Limits = Readonly<Record<"waitingCharacters" | "retryMs", number>>;

interface LogOutputOptions {
  readonly sink: Sink;
  /** The line that reports how many lines were dropped. */
  readonly droppedLine: (count: number) => string;
  /** Only tests set other limits. */
  readonly limits?: Limits;
}

export class LogOutput {
  readonly #options: LogOutputOptions;
  readonly #limits: Limits;
  #waiting: string[] = [];
  #waitingCharacters = 0;
  #isScheduled = false;
  #isWriting = false;
  /** True for a while after a failed write. New lines wait meanwhile. */
  #isPaused = false;
  #dropped = 0;
  #unreported = 0;

  constructor(options: LogOutputOptions) {
    this.#options = options;
    this.#limits = options.limits ?? LOG_LIMITS;
  }

  /** Lines that were dropped since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Queues one line, which ends in a line feed. Never throws, never waits. */
  write(line: string): void {
    if (this.#waitingCharacters + line.length > this.#limits.waitingCharacters) return this.#drop(1);
    this.#waiting.push(line);
    this.#waitingCharacters += line.length;
    this.#schedule();
  }

  /** Resolves when nothing waits any more, or when the time is over. */
  async flush(withinMs: number): Promise<void> {
    const deadlineMs = performance.now() + withinMs;
    while ((this.#isWriting || this.#waiting.length > 0) && performance.now() < deadlineMs) {
      if (this.#isPaused) return;
      await new Promise((resolve) => setTimeout(resolve, LOG_LIMITS.flushPollMs));
    }
  }

  /** Removes and returns all waiting lines, for the last write of a process that ends now. */
  takeRest(): string {
    return this.#isWriting ? "" : this.#take().join("");
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isWriting) return;
    this.#isScheduled = true;
    // All lines of one turn of the event loop go into one write.
    setImmediate(() => {
      this.#isScheduled = false;
      this.#send();
    });
  }

  #send(): void {
    if (this.#isWriting || this.#isPaused || this.#waiting.length === 0) return;
    const reported = this.#unreported;
    if (reported > 0) {
      this.#waiting.unshift(this.#options.droppedLine(reported));
      this.#unreported = 0;
    }
    const lines = this.#take();
    this.#isWriting = true;
    this.#options.sink(lines.join(""), (error) => {
      this.#isWriting = false;
      if (!error) return this.#schedule();
      this.#unreported += reported;
      this.#drop(reported > 0 ? lines.length - 1 : lines.length);
      this.#pause();
    });
  }

  #pause(): void {
    this.#isPaused = true;
    const goOn = (): void => {
      this.#isPaused = false;
      this.#schedule();
    };
    // The process may end before this timer, without the waiting lines.
    setTimeout(goOn, this.#limits.retryMs).unref();
  }

  #take(): string[] {
    const lines = this.#waiting;
    this.#waiting = [];
    this.#waitingCharacters = 0;
    return lines;
  }

  #drop(count: number): void {
    this.#dropped += count;
    this.#unreported += count;
  }
}

/** Where the lines go, and the descriptor for the last write of the process. */
interface StandardOutput {
  readonly sink: Sink;
  readonly descriptor: number;
}

/**
 * A pipe and a socket are written by Node's stream, which waits without blocking a thread: otherwise a process with a
 * stalled reader could not end. Node writes a terminal synchronously, so a terminal that a person has paused would stop
 * the process: it is opened again, without blocking. A file is written by its descriptor, because a stream does not work
 * any more after one full disk.
 */
export function standardOutput(): StandardOutput {
  const stats = fstatSync(STANDARD_OUTPUT);
  if (stats.isFIFO() || stats.isSocket()) {
    // A lost reader causes an error event, which would end the process without a listener.
    process.stdout.on("error", () => undefined);
    return { descriptor: STANDARD_OUTPUT, sink: (text, done) => void process.stdout.write(text, done) };
  }
  const descriptor = isatty(STANDARD_OUTPUT)
    ? openSync(`/dev/fd/${STANDARD_OUTPUT}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
    : STANDARD_OUTPUT;
  return { descriptor, sink: (text, done) => writeAll(descriptor, Buffer.from(text), done) };
}

/** A write stores only a part of the bytes when the disk becomes full, and none while a terminal is paused. */
function writeAll(descriptor: number, bytes: Uint8Array, done: (error: Error | null) => void): void {
  writeToDescriptor(descriptor, bytes, (error, written) => {
    if (error?.code === "EAGAIN") {
      setTimeout(() => writeAll(descriptor, bytes, done), LOG_LIMITS.terminalPollMs).unref();
      return;
    }
    if (error === null && written < bytes.length) return writeAll(descriptor, bytes.subarray(written), done);
    done(error);
  });
}

/** Writes the last lines of a process that ends now. It tries only once, so as not to delay the end. */
export function writeLast(output: LogOutput, descriptor: number): void {
  try {
    const rest = output.takeRest();
    if (rest !== "") writeSync(descriptor, rest);
  } catch {
    // The reader does not read, is gone, or the disk is full; the process ends anyway.
  }
}
