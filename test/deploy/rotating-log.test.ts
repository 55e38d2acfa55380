/** The logs of `npm start`: they rotate while they grow, stay within their bound, and no disk delays their writers. */
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, inject, test, vi } from "vitest";
import { startChild } from "../../deploy/child.ts";
import { startNats } from "../../deploy/embedded/nats.ts";
import { deployLimits } from "../../deploy/limits.ts";
import { LOG_PARTS, logOf, RotatingLog, trimLog } from "../../deploy/log-files.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder("rotating-log");
const disk = mountSmallDisk("rotating-log", 1);
const WAIT = { timeout: 60_000, interval: 10 };
const KILOBYTE = 1_024;

const logs: RotatingLog[] = [];
afterEach(async () => {
  for (const log of logs.splice(0)) await log.close();
});
afterAll(() => {
  folder.remove();
  disk.remove();
});

function open(logFile: string, logFileBytes: number): RotatingLog {
  const log = new RotatingLog({ logFile, logFileBytes });
  logs.push(log);
  return log;
}

/** The files of a log by name, with their sizes. */
function filesOf(name: string): [string, number][] {
  const names = readdirSync(folder.path).filter((file) => file.startsWith(name));
  return names.toSorted().map((file) => [file, statSync(join(folder.path, file)).size]);
}
const bytesOf = (files: readonly [string, number][]): number => files.reduce((sum, [, bytes]) => sum + bytes, 0);

/** A process that prints so many lines of 100 bytes, numbered, and ends. */
function printer(lines: number, logFile: string, logFileBytes: number) {
  const program = `
    let line = 0;
    const print = () => {
      while (line < ${lines}) if (!process.stdout.write(String(line++).padEnd(99, ".") + "\\n")) return;
    };
    process.stdout.on("drain", print);
    print();`;
  return startChild({
    command: process.execPath,
    args: ["-e", program],
    spawn: {},
    stopSignal: "SIGTERM",
    stopMs: 1_000,
    orphanSignal: "TERM",
    log: { logFile, logFileBytes },
  });
}

describe("the log of a part", () => {
  test("more than its bound: files with whole lines are moved aside while it grows, and the oldest are removed", async () => {
    const logFile = join(folder.path, "busy.log");
    const fileBytes = 100 * KILOBYTE;
    // Less than `logWaitingBytes`: however slow the disk is, no line is dropped.
    const child = await printer(9_000, logFile, fileBytes);
    await child.output.logged;
    const files = filesOf("busy.log");
    expect(files.map(([name]) => name)).toEqual(["busy.log", ...[1, 2, 3, 4].map((index) => `busy.log.${index}`)]);
    for (const [, bytes] of files) expect(bytes).toBeLessThanOrEqual(fileBytes + deployLimits.logWriteBytes);
    const text = files.toReversed().map(([name]) => readFileSync(join(folder.path, name), "utf8"));
    const lines = text.join("").trim().split("\n");
    const numbers = lines.map((line) => Number.parseInt(line, 10));
    expect(lines.every((line) => line.length === 99)).toBe(true);
    expect(numbers.at(-1)).toBe(8_999);
    expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0) + index));
    expect(child.output.tail().trim().split("\n").at(-1)).toBe(lines.at(-1));
  });

  test("a full disk: it accepts lines without waiting, and reports how many are missing when there is space", async () => {
    disk.fill(0);
    const logFile = join(disk.path, "full.log");
    const log = open(logFile, 400 * KILOBYTE);
    const line = Buffer.from(`${"x".repeat(999)}\n`);
    for (let count = 0; count < 100; count += 1) log.write(line);
    // Waits for the first write, because nothing can fail before it.
    await vi.waitFor(() => expect(existsSync(logFile)).toBe(true), WAIT);
    await new Promise((resolve) => setTimeout(resolve, 100));
    disk.empty();
    const written = vi.waitFor(() => {
      log.write(Buffer.from("again\n"));
      expect(readFileSync(logFile, "utf8")).toContain("again");
    }, WAIT);
    await written;
    const lines = readFileSync(logFile, "utf8").trim().split("\n");
    const report = JSON.parse(lines.find((each) => each.includes("lines are missing here")) ?? "{}") as object;
    expect(report).toMatchObject({ level: "warn", reason: "ENOSPC", lines: expect.any(Number) as number });
    expect((report as { lines: number }).lines).toBeGreaterThanOrEqual(100);
  });

  test("a disk that is too slow: it keeps a bounded number of bytes, and counts the lines that it drops", async () => {
    const log = open(join(folder.path, "slow.log"), 64 * 1_024 * KILOBYTE);
    const line = Buffer.from(`${"x".repeat(KILOBYTE - 1)}\n`);
    // All lines come in one turn of the event loop, so no write can end meanwhile.
    const lines = deployLimits.logWaitingBytes / KILOBYTE + 50;
    for (let count = 0; count < lines; count += 1) log.write(line);
    await vi.waitFor(() => {
      log.write(Buffer.from("again\n"));
      const report = /"reason":"slow_disk","lines":(\d+)/.exec(readFileSync(join(folder.path, "slow.log"), "utf8"));
      // Further lines of this loop may be dropped, too.
      expect(Number(report?.[1])).toBeGreaterThanOrEqual(50);
    }, WAIT);
  });

  test("closed while lines are missing: it reports how many", async () => {
    const log = open(join(folder.path, "closed.log"), 64 * 1_024 * KILOBYTE);
    const line = Buffer.from(`${"x".repeat(KILOBYTE - 1)}\n`);
    const lines = deployLimits.logWaitingBytes / KILOBYTE + 50;
    for (let count = 0; count < lines; count += 1) log.write(line);
    await log.close();
    expect(readFileSync(join(folder.path, "closed.log"), "utf8")).toContain('"reason":"slow_disk","lines":50,');
  });

  test("a smaller bound than before: the next start removes the oldest files", () => {
    const log = { logFile: join(folder.path, "old.log"), logFileBytes: 10 * KILOBYTE };
    for (const [index, name] of ["old.log.1", "old.log.2", "old.log.20261122"].entries()) {
      const file = join(folder.path, name);
      writeFileSync(file, "x".repeat(250 * KILOBYTE));
      utimesSync(file, 1_000 - index, 1_000 - index);
    }
    writeFileSync(join(folder.path, "older.log.1"), "");
    trimLog(log);
    expect(filesOf("old")).toEqual([
      ["old.log.1", 250 * KILOBYTE],
      ["old.log.2", 250 * KILOBYTE],
      ["older.log.1", 0],
    ]);
  });
});

describe("all logs", () => {
  test("any total: the files of all parts together cannot be larger", () => {
    for (const logMaxBytes of [20, 200, 1_000_000].map((megabytes) => megabytes * 1_024 ** 2)) {
      const most = LOG_PARTS.map((part) => logOf(part, { dataDir: "/data", logMaxBytes }).logFileBytes ?? 0);
      const bytes = most.map((fileBytes) => (fileBytes + deployLimits.logWriteBytes) * deployLimits.logFiles);
      expect(Math.min(...most)).toBeGreaterThan(0);
      expect(bytes.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(logMaxBytes);
    }
  });

  test("nats-server's log: it rotates and removes older files within the same bound", async () => {
    const logFile = join(folder.path, "nats-server.log");
    const logFileBytes = 2 * KILOBYTE;
    const token = randomBytes(12).toString("hex");
    const binary = inject("natsBinary");
    const server = await startNats({ binary, folder: join(folder.path, "nats"), logFile, logFileBytes, token });
    // Each reload writes a few lines.
    await vi.waitFor(() => {
      server.child.process.kill("SIGHUP");
      expect(filesOf("nats-server.log").length).toBe(deployLimits.logFiles);
    }, WAIT);
    const first = filesOf("nats-server.log")[1]?.[0] ?? "";
    await vi.waitFor(() => {
      server.child.process.kill("SIGHUP");
      expect(filesOf("nats-server.log").map(([name]) => name)).not.toContain(first);
    }, WAIT);
    const files = filesOf("nats-server.log");
    await server.child.stop();
    expect(files.length).toBeLessThanOrEqual(deployLimits.logFiles);
    expect(bytesOf(files)).toBeLessThanOrEqual(deployLimits.logFiles * (logFileBytes + deployLimits.logWriteBytes));
  });
});
