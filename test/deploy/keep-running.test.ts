/** What happens to one part of the system that ends by itself; the parts are real processes that end in different ways. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { DiskRoom } from "../../deploy/disk-room.ts";
import { keepRunning, RestartPolicy } from "../../deploy/keep-running.ts";
import { type ServiceProcess, startServiceProcess } from "../../deploy/service-process.ts";
import type { StopStep } from "../../deploy/supervisor.ts";
import { type Disk, UNWATCHED } from "../../services/runtime/disk-watch.ts";
import type { UserError } from "../../services/runtime/user-error.ts";
import { isRunning } from "../support/running-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder("keep-running");
const logFile = join(folder.path, "clerk.log");
const SCRIPT = join(import.meta.dirname, "programs", "service.ts");
/** A process starts in well under a second, and in a few on a busy machine. */
const WAIT = { timeout: 60_000, interval: 20 };
const QUICK = {
  restartFirstMs: 10,
  restartMaxMs: 40,
  restartQuietMs: 60_000,
  restartMaxEnds: 3,
  restartWindowMs: 60_000,
};

const stops: StopStep[] = [];
const now = new AbortController();
now.abort();
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop(now.signal);
});
afterAll(folder.remove);

/** The parts that run at this moment, however they were started. */
function runningParts(): string[] {
  const rows = execFileSync("ps", ["-A", "-o", "ppid=,args="], { encoding: "utf8" }).split("\n");
  return rows.filter((row) => Number.parseInt(row, 10) === process.pid && row.includes(SCRIPT));
}

/** Keeps a part running that behaves as the words print, one for each start; the last one again and again. */
async function keep(
  lives: readonly string[],
  options: { readonly limits?: typeof QUICK; readonly disk?: Disk; readonly spaceIsShort?: boolean } = {},
) {
  const said: string[] = [];
  const pids: number[] = [];
  const fail = vi.fn<(error: UserError) => void>();
  let starts = 0;
  const launch = async (stopping: AbortSignal): Promise<ServiceProcess> => {
    const what = lives[Math.min(starts, lives.length - 1)] ?? "well";
    starts += 1;
    const part = { name: "clerk", script: SCRIPT, args: [what], environment: process.env, logFile };
    const running = await startServiceProcess({ ...part, stopping });
    pids.push(running.child.pid);
    if (options.spaceIsShort !== true) return running;
    return { ...running, ended: running.ended.then((ending) => ({ ...ending, wasForSpace: true })) };
  };
  const control = { fail, stopping: new AbortController().signal };
  const policy = new RestartPolicy(performance.now(), options.limits ?? QUICK);
  const print = (line: string): number => said.push(line);
  const room = new DiskRoom(options.disk ?? UNWATCHED, "/data");
  const stop = await keepRunning({ name: "clerk", logFile, control, print, launch, policy, room });
  stops.push(stop);
  return { stop, said, pids, fail, starts: () => starts };
}

describe("a part that ends by itself", () => {
  test("is started again after a pause, and both is said in one line each", async () => {
    const clerk = await keep(["dies", "well"]);
    await vi.waitFor(() => expect(clerk.said).toHaveLength(2), WAIT);
    expect(clerk.said[0]).toBe(`clerk ended with code 5; it is started again in 0.01 s. Its log is ${logFile}.`);
    expect(clerk.said[1]).toMatch(/^clerk is up again after \d+\.\d s\.$/);
    expect(clerk.pids.map(isRunning)).toEqual([false, true]);
    await clerk.stop(new AbortController().signal);
    expect(clerk.pids.map(isRunning)).toEqual([false, false]);
    expect(clerk.fail).not.toHaveBeenCalled();
  });

  test("is tried again when a start does not succeed, and the line quotes why", async () => {
    const clerk = await keep(["dies", "refuses", "well"]);
    await vi.waitFor(() => expect(clerk.said).toHaveLength(3), WAIT);
    expect(clerk.said[1]).toContain(
      "clerk could not be started again (There is no luck today); it is started again in",
    );
    expect(clerk.fail).not.toHaveBeenCalled();
  });

  test("again and again is abandoned with one sentence", async () => {
    const clerk = await keep(["dies"]);
    await vi.waitFor(() => expect(clerk.fail).toHaveBeenCalledOnce(), WAIT);
    expect(clerk.fail.mock.calls[0]?.[0]).toMatchObject({
      code: "child_abandoned",
      exitCode: 1,
      message: `clerk ended 3 times within 60 s and is abandoned. Its log is ${logFile}.`,
    });
    expect(clerk.starts()).toBe(3);
  });

  test("for a reason that stays is not started again, and its own sentence is the system's", async () => {
    const clerk = await keep(["resigns", "well"]);
    await vi.waitFor(() => expect(clerk.fail).toHaveBeenCalledOnce(), WAIT);
    expect(clerk.fail.mock.calls[0]?.[0].message).toBe("The database is newer than this.");
    expect(clerk.starts()).toBe(1);
    expect(clerk.said).toEqual([]);
  });
});

describe("a part that ends while the disk is full", () => {
  const FULL_BYTES = 3 * 1_024 ** 2;
  const ENOUGH_BYTES = 1_024 ** 3;

  test("waits for space, which one line says, and is started when there is some", async () => {
    let freeBytes = FULL_BYTES;
    const disk: Disk = { freeBytes: () => freeBytes, tier: () => "full" };
    const clerk = await keep(["dies", "well"], { disk });
    await vi.waitFor(() => expect(clerk.said).toHaveLength(1), WAIT);
    expect(clerk.said[0]).toBe(
      "clerk ended with code 5. The disk of /data has 3 MB left, and 64 MB are needed to start it again; it is started when they are free.",
    );
    expect(clerk.starts()).toBe(1);
    freeBytes = ENOUGH_BYTES;
    await vi.waitFor(() => expect(clerk.said.at(-1)).toMatch(/^clerk is up again/), WAIT);
    expect(clerk.starts()).toBe(2);
    expect(clerk.fail).not.toHaveBeenCalled();
  });

  test("more often than a part may end: does not end the service, however the space comes and goes", async () => {
    const disk: Disk = { freeBytes: () => ENOUGH_BYTES, tier: () => "ok" };
    const clerk = await keep(["dies", "dies", "dies", "dies", "well"], { disk, spaceIsShort: true });
    await vi.waitFor(() => expect(clerk.pids).toHaveLength(QUICK.restartMaxEnds + 2), WAIT);
    expect(clerk.fail).not.toHaveBeenCalled();
  });

  test("stopped while it waits for space: ends at once", async () => {
    const disk: Disk = { freeBytes: () => FULL_BYTES, tier: () => "full" };
    const clerk = await keep(["dies", "well"], { disk });
    await vi.waitFor(() => expect(clerk.said).toHaveLength(1), WAIT);
    await clerk.stop(new AbortController().signal);
    expect(clerk.starts()).toBe(1);
    expect(clerk.fail).not.toHaveBeenCalled();
  });
});

describe("a stop", () => {
  test("during the pause ends the waiting at once, and nothing is started any more", async () => {
    const clerk = await keep(["dies", "well"], { limits: { ...QUICK, restartFirstMs: 60_000 } });
    await vi.waitFor(() => expect(clerk.said).toHaveLength(1), WAIT);
    const beganAtMs = performance.now();
    await clerk.stop(new AbortController().signal);
    expect(performance.now() - beganAtMs).toBeLessThan(2_000);
    expect(clerk.starts()).toBe(1);
    expect(clerk.fail).not.toHaveBeenCalled();
  });

  test("while it is being started again leaves no process behind", async () => {
    const clerk = await keep(["dies", "silent"]);
    await vi.waitFor(() => expect(runningParts().join()).toContain("silent"), WAIT);
    await clerk.stop(new AbortController().signal);
    expect(clerk.pids).toHaveLength(1);
    expect(runningParts()).toEqual([]);
    expect(clerk.said).toHaveLength(1);
    expect(clerk.fail).not.toHaveBeenCalled();
  });
});
