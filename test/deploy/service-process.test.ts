import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { startServiceProcess } from "../../deploy/service-process.ts";
import type { UserError } from "../../services/runtime/user-error.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder("service");
const logFile = join(folder.path, "service.log");
afterAll(folder.remove);

function start(what: string, stopping: AbortSignal = new AbortController().signal) {
  const fail = vi.fn<(error: UserError) => void>();
  const script = join(import.meta.dirname, "programs", "service.ts");
  const control = { fail, stopping };
  const options = { name: "clerk", script, args: [what], environment: process.env, logFile, control };
  return { fail, started: startServiceProcess(options) };
}

const never = new AbortController().signal;

describe("a service process", () => {
  test("reports ready with its facts, and stops when asked to", async () => {
    const { started, fail } = start("well");
    const running = await started;
    expect(running.ready).toEqual({ ready: true, port: 4711 });
    await running.stop(never);
    expect(await running.child.exited).toEqual({ code: 0, signal: null });
    expect(fail).not.toHaveBeenCalled();
  });

  test("that refuses to start is quoted", async () => {
    await expect(start("refuses").started).rejects.toMatchObject({
      message: "There is no luck today.",
      code: "no_luck",
    });
  });

  test("that crashes while starting is named, and its stack trace is in the log only", async () => {
    await expect(start("crashes").started).rejects.toMatchObject({
      message: `clerk ended with code 1 while starting; its log is ${logFile}.`,
      code: "service_start_failed",
    });
    expect(readFileSync(logFile, "utf8")).toContain("a detail for the log");
  });

  test("that ends by itself later fails the system", async () => {
    const { started, fail } = start("dies");
    await started;
    await vi.waitFor(() => expect(fail).toHaveBeenCalledOnce(), { timeout: 5_000 });
    expect(fail.mock.calls[0]?.[0].message).toBe(
      `clerk ended with code 5 unexpectedly, so everything is stopped; its log is ${logFile}.`,
    );
  });

  test("that never gets ready is given up as soon as everything stops", async () => {
    const stopping = new AbortController();
    const { started } = start("silent", stopping.signal);
    setTimeout(() => stopping.abort(), 300);
    await expect(started).rejects.toMatchObject({
      message: `clerk was stopped while starting; its log is ${logFile}.`,
    });
  });

  test("that does not listen is killed by a second signal", async () => {
    const running = await start("deaf").started;
    const immediately = new AbortController();
    setTimeout(() => immediately.abort(), 100);
    await running.stop(immediately.signal);
    expect(await running.child.exited).toEqual({ code: null, signal: "SIGKILL" });
  });
});
