/** A process continues when the reader of its log is slow or gone, or when the disk of its log is full. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { LogOutput, type Sink } from "../../services/runtime/log-output.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const PROGRAM = join(import.meta.dirname, "programs", "log.ts");
const disk = mountSmallDisk("log-output", 2);
const WAIT = { timeout: 15_000, interval: 10 };
const DROPPED = "log lines were dropped";
/** The limit for a turn of the event loop. A blocked write takes much longer. */
const BLOCKED_MS = 1_000;

interface Report {
  readonly latestMs: number;
  readonly lines: number;
  readonly lost: number;
}

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});
afterAll(disk.remove);

function start(output: "pipe" | number): { child: ChildProcess; report: () => Report } {
  let last: Report = { latestMs: 0, lines: 0, lost: 0 };
  const child = spawn(process.execPath, [PROGRAM], { stdio: ["ignore", output, output, "ipc"] });
  children.push(child);
  child.on("message", (message) => {
    if (typeof message === "object" && "lines" in message) last = message as Report;
  });
  return { child, report: () => last };
}

/** Ends the process by SIGTERM. Before its end, it waits for its log for at most half a second. */
async function endInOrder(child: ChildProcess): Promise<unknown> {
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  return (await ended)[0];
}

describe("a process that logs", () => {
  test("to a reader that does not read: continues, drops and counts lines, and ends in order", async () => {
    const { child, report } = start("pipe");
    child.stdout?.pause();
    await vi.waitFor(() => expect(report().lost).toBeGreaterThan(1_000), WAIT);
    expect(report().latestMs).toBeLessThan(BLOCKED_MS);
    expect(await endInOrder(child)).toBe(0);
  });

  test("to a reader that reads again: reports exactly how many lines are missing", async () => {
    const { child, report } = start("pipe");
    child.stdout?.pause();
    await vi.waitFor(() => expect(report().lost).toBeGreaterThan(1_000), WAIT);
    let text = "";
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    child.stdout?.resume();
    await vi.waitFor(() => expect(text.includes(DROPPED)).toBe(true), WAIT);
    expect(await endInOrder(child)).toBe(0);
    // The last line may be cut, because output that the reader has not read at the end of the process is lost.
    const lines = text
      .slice(0, text.lastIndexOf("\n"))
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const dropped = lines.map((line) => line["dropped"]).filter((count) => typeof count === "number");
    const seen = lines.filter((line) => line["msg"] === "line").map((line) => Number(line["line"]));
    expect(dropped.reduce((sum, count) => sum + count, 0)).toBe(Math.max(...seen) + 1 - seen.length);
  });

  test("to a reader that is gone: continues, and ends in order", async () => {
    const { child, report } = start("pipe");
    await vi.waitFor(() => expect(report().lines).toBeGreaterThan(0), WAIT);
    child.stdout?.destroy();
    child.stderr?.destroy();
    await vi.waitFor(() => expect(report().lost).toBeGreaterThan(1_000), WAIT);
    expect(report().latestMs).toBeLessThan(BLOCKED_MS);
    expect(await endInOrder(child)).toBe(0);
  });

  test("to a shell's pipe whose reader is gone: continues, and ends in order", async () => {
    const folder = temporaryFolder("pipe");
    mkdirSync(folder.path, { recursive: true });
    const path = join(folder.path, "pipe");
    execFileSync("mkfifo", [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writer = openSync(path, constants.O_WRONLY);
    const { child, report } = start(writer);
    closeSync(writer);
    await vi.waitFor(() => expect(report().lines).toBeGreaterThan(0), WAIT);
    closeSync(reader);
    await vi.waitFor(() => expect(report().lost).toBeGreaterThan(1_000), WAIT);
    expect(report().latestMs).toBeLessThan(BLOCKED_MS);
    expect(await endInOrder(child)).toBe(0);
    folder.remove();
  });

  test("to a terminal that a person has paused: continues, and ends in order", async () => {
    const terminal = spawn("script", ["--quiet", "--command", "tty; exec sleep 600", "/dev/null"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    children.push(terminal);
    const [path] = (await once(terminal.stdout, "data")) as [Buffer];
    terminal.stdout.pause();
    const end = openSync(path.toString().trim(), constants.O_WRONLY | constants.O_NOCTTY);
    const { child, report } = start(end);
    closeSync(end);
    await vi.waitFor(() => expect(report().lost).toBeGreaterThan(1_000), WAIT);
    expect(report().latestMs).toBeLessThan(BLOCKED_MS);
    expect(await endInOrder(child)).toBe(0);
  });

  test("to a file on a full disk: continues, and writes again when there is space", async () => {
    const path = join(disk.path, "full.log");
    const file = openSync(path, "a");
    const { child, report } = start(file);
    closeSync(file);
    await vi.waitFor(() => expect(report().lost).toBeGreaterThan(1_000), WAIT);
    expect(disk.freeBytes()).toBe(0);
    expect(report().latestMs).toBeLessThan(BLOCKED_MS);
    disk.grow(64);
    await vi.waitFor(() => expect(readFileSync(path, "utf8").includes(DROPPED)).toBe(true), WAIT);
    expect(await endInOrder(child)).toBe(0);
    expect(readFileSync(path, "utf8").includes('"msg":"stopped"')).toBe(true);
  });

  test("to a file on a disk that stays full: ends in order", async () => {
    disk.fill(0);
    const file = openSync(join(disk.path, "end.log"), "a");
    const { child, report } = start(file);
    closeSync(file);
    await vi.waitFor(() => expect(report().lost).toBeGreaterThan(1_000), WAIT);
    expect(await endInOrder(child)).toBe(0);
  });
});

describe("the log's output", () => {
  const droppedLine = (count: number): string => `${count} dropped\n`;

  test("a reader that does not read: lines up to the bound are kept, and the rest is counted", async () => {
    const written: string[] = [];
    let done: Parameters<Sink>[1] = () => undefined;
    const sink: Sink = (text, whenDone) => {
      written.push(text);
      done = whenDone;
    };
    const output = new LogOutput({ sink, droppedLine, limits: { waitingCharacters: 6, retryMs: 1 } });
    output.write("1\n");
    await new Promise(setImmediate);
    for (const line of ["2\n", "3\n", "4\n", "5\n", "6\n"]) output.write(line);
    expect(output.dropped).toBe(2);
    done(undefined);
    await new Promise(setImmediate);
    expect(written).toEqual(["1\n", "2 dropped\n2\n3\n4\n"]);
  });

  test("writes that fail: their lines are counted, and the next successful write reports the sum", async () => {
    const written: string[] = [];
    let isFull = true;
    const sink: Sink = (text, done) => {
      if (!isFull) written.push(text);
      done(isFull ? new Error("full") : undefined);
    };
    const output = new LogOutput({ sink, droppedLine, limits: { waitingCharacters: 100, retryMs: 1 } });
    output.write("1\n");
    await new Promise(setImmediate);
    output.write("2\n");
    await vi.waitFor(() => expect(output.dropped).toBe(2), WAIT);
    isFull = false;
    output.write("3\n");
    await vi.waitFor(() => expect(written).toEqual(["2 dropped\n3\n"]), WAIT);
    expect(output.dropped).toBe(2);
  });
});
