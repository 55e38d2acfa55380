/** `npm start` left alone: every part of it is killed with SIGKILL once, comes back by itself, and a payment is collected. */
import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { collectAt, sandboxFacts } from "../support/demo-station.ts";
import { startPorts } from "../support/free-port.ts";
import { isRunning, type RunningProgram, runProgram } from "../support/running-program.ts";
import { serverFolder } from "../support/temporary-folder.ts";

const START = join(import.meta.dirname, "..", "..", "deploy", "start.ts");
/** The parts by the name in their lines, and by a word of their command line. */
const PARTS = {
  "virtual-companion": "clients/virtual-companion.ts",
  "virtual-display": "clients/virtual-display.ts",
  gateway: "gateway/main.ts",
  stations: "services/main.ts stations",
  services: "services/main.ts registry",
  "nats-server": "nats-server --config",
  PostgreSQL: "bin/postgres -D",
} as const;
const PART_NAMES = Object.keys(PARTS) as (keyof typeof PARTS)[];
/** The start and restart of all parts, on a machine that is busy with other tests. */
const TEST_MS = 300_000;

const folder = serverFolder("restart");
let program: RunningProgram;

beforeAll(async () => {
  const env = { ...process.env, NATS_URL: "", DATABASE_URL: "", ...(await startPorts()), DATA_DIR: folder.path };
  program = runProgram(process.execPath, [START], { env });
  await program.waitFor(/Ctrl-C stops within/);
}, TEST_MS);

afterAll(async () => {
  if (isRunning(program.pid)) program.process.kill("SIGKILL");
  await program.ended;
  folder.remove();
});

/** The process ids of the start's children whose command line holds the words. */
function childrenWith(words: string): number[] {
  const rows = execFileSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" }).trim().split("\n");
  return rows.flatMap((row) => {
    const [, pid, parent, args = ""] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(row) ?? [];
    return Number(parent) === program.pid && args.includes(words) ? [Number(pid)] : [];
  });
}

function pidOf(part: keyof typeof PARTS): number {
  const [pid, ...others] = childrenWith(PARTS[part]);
  if (pid === undefined || others.length > 0) throw new Error(`There is not one ${part}: ${[pid, ...others].join()}`);
  return pid;
}

/** Kills a part and waits for the line that it is back. */
async function killAndAwait(part: keyof typeof PARTS): Promise<void> {
  const before = program.output().length;
  process.kill(pidOf(part), "SIGKILL");
  await vi.waitFor(() => expect(program.output().slice(before)).toMatch(new RegExp(`^${part} is up again`, "m")), {
    timeout: 120_000,
    interval: 50,
  });
}

describe("npm start", { timeout: TEST_MS }, () => {
  test("every part is killed: it brings each back with one line, and collects a payment afterwards", async () => {
    const before = new Map(PART_NAMES.map((part) => [part, pidOf(part)]));
    for (const part of PART_NAMES) await killAndAwait(part);
    for (const part of PART_NAMES) {
      expect(pidOf(part), part).not.toBe(before.get(part));
      const line = `${part} was ended by SIGKILL; it is started again in 0.2 s. Its log is ${folder.path}/logs/`;
      expect(program.output().split(line), part).toHaveLength(2);
    }
    await collectAt(sandboxFacts(folder.path));
  });

  test("the key for enrollment codes: it is private, and only the process that hashes them gets it", () => {
    const file = join(folder.path, "secrets.json");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const key = (JSON.parse(readFileSync(file, "utf8")) as Record<string, string>)["enrollment_code_key"];
    expect(key).toMatch(/^[\w-]{32}$/);
    const holds = (part: keyof typeof PARTS): boolean =>
      readFileSync(`/proc/${pidOf(part)}/environ`, "utf8").includes(key ?? "");
    expect(PART_NAMES.filter(holds)).toEqual(["services"]);
  });

  test("stopped while a part waits to be started again: it ends in good order and leaves nothing running", async () => {
    // Each end doubles the pause, until there is time to stop within one.
    for (let round = 0; round < 2; round += 1) await killAndAwait("gateway");
    const pids = PART_NAMES.map(pidOf);
    process.kill(pidOf("gateway"), "SIGKILL");
    await program.waitFor(/gateway was ended by SIGKILL; it is started again in 1\.6 s/);
    program.process.kill("SIGTERM");
    expect(await program.ended).toBe(0);
    expect(program.output().trim().split("\n").slice(-2)).toEqual(["Stopping (SIGTERM) …", "Stopped."]);
    expect(pids.filter(isRunning)).toEqual([]);
    await expect(
      fetch(`${sandboxFacts(folder.path).baseUrl}/healthz`),
      "no gateway was started after the stop",
    ).rejects.toThrow();
  });
});
