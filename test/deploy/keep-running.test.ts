/** A part of the system that ends without a stop. The parts are real processes, which end in different ways. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { DiskRoom } from "../../deploy/disk-room.ts";
import { keepRunning, RestartPolicy } from "../../deploy/keep-running.ts";
import { deployLimits } from "../../deploy/limits.ts";
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

/** Keeps a part running. Each word describes how one start behaves. The last word applies to all later starts. */
async function keep(
  lives: readonly string[],
  options: { readonly limits?: typeof QUICK; readonly disk?: Disk; readonly spaceIsShort?: boolean } = {},
) {
  const printed: string[] = [];
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
  const print = (line: string): number => printed.push(line);
  const room = new DiskRoom(options.disk ?? UNWATCHED, "/data");
  const stop = await keepRunning({ name: "clerk", logFile, control, print, launch, policy, room });
  stops.push(stop);
  return { stop, printed, pids, fail, starts: () => starts };
}

describe("a part that ends without a stop", () => {
  test("it ends once: it is started again after a pause, with one line for the end and one for the start", async () => {
    const clerk = await keep(["dies", "well"]);
    await vi.waitFor(() => expect(clerk.printed).toHaveLength(2), WAIT);
    expect(clerk.printed[0]).toBe(`clerk ended with code 5; it is started again in 0.01 s. Its log is ${logFile}.`);
    expect(clerk.printed[1]).toMatch(/^clerk is up again after \d+\.\d s\.$/);
    expect(clerk.pids.map(isRunning)).toEqual([false, true]);
    await clerk.stop(new AbortController().signal);
    expect(clerk.pids.map(isRunning)).toEqual([false, false]);
    expect(clerk.fail).not.toHaveBeenCalled();
  });

  test("a start that fails: it is tried again, and the line has the reason", async () => {
    const clerk = await keep(["dies", "refuses", "well"]);
    await vi.waitFor(() => expect(clerk.printed).toHaveLength(3), WAIT);
    expect(clerk.printed[1]).toContain(
      "clerk could not be started again (There is no luck today); it is started again in",
    );
    expect(clerk.fail).not.toHaveBeenCalled();
  });

  test("it ends repeatedly: it is abandoned with one sentence", async () => {
    const clerk = await keep(["dies"]);
    await vi.waitFor(() => expect(clerk.fail).toHaveBeenCalledOnce(), WAIT);
    expect(clerk.fail.mock.calls[0]?.[0]).toMatchObject({
      code: "child_abandoned",
      exitCode: 1,
      message: `clerk ended 3 times within 60 s and is abandoned. Its log is ${logFile}.`,
    });
    expect(clerk.starts()).toBe(3);
  });

  test("a reason that a restart cannot remove: the part is not started again, and its sentence ends the system", async () => {
    const clerk = await keep(["resigns", "well"]);
    await vi.waitFor(() => expect(clerk.fail).toHaveBeenCalledOnce(), WAIT);
    expect(clerk.fail.mock.calls[0]?.[0].message).toBe("The database is newer than this.");
    expect(clerk.starts()).toBe(1);
    expect(clerk.printed).toEqual([]);
  });
});

describe("a part that ends while the disk is full", () => {
  const FULL_BYTES = 3 * 1_024 ** 2;
  const ENOUGH_BYTES = 1_024 ** 3;

  test("no space: it waits, with one line, and is started when there is space", async () => {
    let freeBytes = FULL_BYTES;
    const disk: Disk = { freeBytes: () => freeBytes, tier: () => "full" };
    const clerk = await keep(["dies", "well"], { disk });
    await vi.waitFor(() => expect(clerk.printed).toHaveLength(1), WAIT);
    expect(clerk.printed[0]).toBe(
      "clerk ended with code 5. The disk of /data has 3 MB left, and 64 MB are needed to start it again; it is started when they are free.",
    );
    expect(clerk.starts()).toBe(1);
    freeBytes = ENOUGH_BYTES;
    await vi.waitFor(() => expect(clerk.printed.at(-1)).toMatch(/^clerk is up again/), WAIT);
    expect(clerk.starts()).toBe(2);
    expect(clerk.fail).not.toHaveBeenCalled();
  });

  test("more ends than the limit: the part is not abandoned", async () => {
    const disk: Disk = { freeBytes: () => ENOUGH_BYTES, tier: () => "ok" };
    const clerk = await keep(["dies", "dies", "dies", "dies", "well"], { disk, spaceIsShort: true });
    await vi.waitFor(() => expect(clerk.pids).toHaveLength(QUICK.restartMaxEnds + 2), WAIT);
    expect(clerk.fail).not.toHaveBeenCalled();
  });

  test("stopped while it waits for space: it ends at once", async () => {
    const disk: Disk = { freeBytes: () => FULL_BYTES, tier: () => "full" };
    const clerk = await keep(["dies", "well"], { disk });
    await vi.waitFor(() => expect(clerk.printed).toHaveLength(1), WAIT);
    await clerk.stop(new AbortController().signal);
    expect(clerk.starts()).toBe(1);
    expect(clerk.fail).not.toHaveBeenCalled();
  });
});

describe("a stop", () => {
  test("during the pause: the wait ends at once, and nothing is started any more", async () => {
    const clerk = await keep(["dies", "well"], { limits: { ...QUICK, restartFirstMs: 60_000 } });
    await vi.waitFor(() => expect(clerk.printed).toHaveLength(1), WAIT);
    const beganAtMs = performance.now();
    await clerk.stop(new AbortController().signal);
    expect(performance.now() - beganAtMs).toBeLessThan(2_000);
    expect(clerk.starts()).toBe(1);
    expect(clerk.fail).not.toHaveBeenCalled();
  });

  test("while the part starts again: no process is left behind", async () => {
    const clerk = await keep(["dies", "silent"]);
    await vi.waitFor(() => expect(runningParts().join()).toContain("silent"), WAIT);
    await clerk.stop(new AbortController().signal);
    expect(clerk.pids).toHaveLength(1);
    expect(runningParts()).toEqual([]);
    expect(clerk.printed).toHaveLength(1);
    expect(clerk.fail).not.toHaveBeenCalled();
  });
});

describe("the restart policy", () => {
  const { restartFirstMs, restartMaxMs, restartQuietMs, restartMaxEnds, restartWindowMs } = deployLimits;

  test("one end after another: the pause doubles up to its longest, and at the limit the part is abandoned", () => {
    const policy = new RestartPolicy(0);
    let nowMs = 0;
    const pauses: number[] = [];
    for (let end = 1; end < restartMaxEnds; end += 1) {
      const verdict = policy.ended(nowMs);
      if (!("afterMs" in verdict)) throw new Error(`abandoned after ${end} ends`);
      pauses.push(verdict.afterMs);
      nowMs += verdict.afterMs + 100;
      policy.up(nowMs);
    }
    expect(pauses).toEqual([200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000]);
    expect(policy.ended(nowMs)).toEqual({ abandonedBecause: "ended 10 times within 5 minutes" });
  });

  test("a long run without an end: the next pause is the first one again", () => {
    const policy = new RestartPolicy(0);
    expect(policy.ended(10)).toEqual({ afterMs: restartFirstMs });
    policy.up(1_000);
    expect(policy.ended(1_000 + restartQuietMs - 1)).toEqual({ afterMs: 2 * restartFirstMs });
    policy.up(200_000);
    expect(policy.ended(200_000 + restartQuietMs)).toEqual({ afterMs: restartFirstMs });
  });

  test("one end a day: each end counts alone, so the part is always started again", () => {
    const policy = new RestartPolicy(0);
    for (let day = 1; day <= 3 * restartMaxEnds; day += 1) {
      expect(policy.ended(day * restartWindowMs)).toEqual({ afterMs: restartFirstMs });
      policy.up(day * restartWindowMs + 1);
    }
  });

  test("starts that take long and fail: the part is abandoned although it does not end often enough", () => {
    const policy = new RestartPolicy(0);
    const startMs = 60_000;
    const verdicts: unknown[] = [];
    for (let nowMs = 0; nowMs <= restartWindowMs; nowMs += startMs) verdicts.push(policy.ended(nowMs));
    expect(verdicts.at(-2)).toHaveProperty("afterMs");
    expect(verdicts.at(-1)).toEqual({ abandonedBecause: "could not be started again for 5 minutes" });
    expect(restartMaxMs).toBeLessThan(startMs);
  });
});

describe("a service process", () => {
  const start = (what: string, stopping?: AbortSignal) =>
    startServiceProcess({
      name: "clerk",
      script: SCRIPT,
      args: [what],
      environment: process.env,
      logFile,
      ...(stopping === undefined ? {} : { stopping }),
    });

  test("it starts: it reports ready with its facts, and stops when asked to", async () => {
    const running = await start("well");
    expect(running.ready).toEqual({ ready: true, port: 4711 });
    await running.child.stop();
    expect(await running.ended).toEqual({ exit: { code: 0, signal: null }, reason: undefined });
  });

  test("it refuses to start: the error contains its sentence", async () => {
    await expect(start("refuses")).rejects.toMatchObject({ message: "There is no luck today.", code: "no_luck" });
  });

  test("it crashes while starting: the error names it, and its stack trace is in the log only", async () => {
    await expect(start("crashes")).rejects.toMatchObject({
      message: `clerk ended with code 1 while starting; its log is ${logFile}.`,
      code: "service_start_failed",
    });
    expect(readFileSync(logFile, "utf8")).toContain("a detail for the log");
  });

  test("it ends later without a stop: its end has the exit code, and its sentence if it sent one", async () => {
    expect(await (await start("dies")).ended).toEqual({ exit: { code: 5, signal: null }, reason: undefined });
    const { exit, reason } = await (await start("resigns")).ended;
    expect(exit).toEqual({ code: 3, signal: null });
    expect(reason).toMatchObject({ code: "schema_newer", message: "The database is newer than this." });
  });

  test("everything stops before it is ready: it is ended", async () => {
    const stopping = new AbortController();
    const started = start("silent", stopping.signal);
    stopping.abort();
    await expect(started).rejects.toMatchObject({
      message: `clerk was stopped while starting; its log is ${logFile}.`,
      code: "service_start_stopped",
    });
  });

  test("it ignores the stop signal: a second one kills it", async () => {
    const running = await start("deaf");
    const immediately = new AbortController();
    const stopped = running.child.stop(immediately.signal);
    immediately.abort();
    expect(await stopped).toEqual({ code: null, signal: "SIGKILL" });
  });
});
