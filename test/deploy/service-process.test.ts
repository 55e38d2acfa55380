import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { startServiceProcess } from "../../deploy/service-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder("service");
const logFile = join(folder.path, "service.log");
afterAll(folder.remove);

function start(what: string, stopping: AbortSignal = new AbortController().signal) {
  const script = join(import.meta.dirname, "programs", "service.ts");
  return startServiceProcess({ name: "clerk", script, args: [what], environment: process.env, logFile, stopping });
}

describe("a service process", () => {
  test("reports ready with its facts, and stops when asked to", async () => {
    const running = await start("well");
    expect(running.ready).toEqual({ ready: true, port: 4711 });
    await running.child.stop();
    expect(await running.ended).toEqual({ exit: { code: 0, signal: null }, reason: undefined });
  });

  test("that refuses to start is quoted", async () => {
    await expect(start("refuses")).rejects.toMatchObject({
      message: "There is no luck today.",
      code: "no_luck",
    });
  });

  test("that crashes while starting is named, and its stack trace is in the log only", async () => {
    await expect(start("crashes")).rejects.toMatchObject({
      message: `clerk ended with code 1 while starting; its log is ${logFile}.`,
      code: "service_start_failed",
    });
    expect(readFileSync(logFile, "utf8")).toContain("a detail for the log");
  });

  test("that ends by itself later says how, and why in its own sentence", async () => {
    expect(await (await start("dies")).ended).toEqual({ exit: { code: 5, signal: null }, reason: undefined });
    const { exit, reason } = await (await start("resigns")).ended;
    expect(exit).toEqual({ code: 3, signal: null });
    expect(reason).toMatchObject({ code: "schema_newer", message: "The database is newer than this." });
  });

  test("that never gets ready is ended as soon as everything stops", async () => {
    const stopping = new AbortController();
    const started = start("silent", stopping.signal);
    setTimeout(() => stopping.abort(), 300);
    await expect(started).rejects.toMatchObject({
      message: `clerk was stopped while starting; its log is ${logFile}.`,
    });
  });

  test("that does not listen is killed by a second signal", async () => {
    const running = await start("deaf");
    const immediately = new AbortController();
    setTimeout(() => immediately.abort(), 100);
    await running.child.stop(immediately.signal);
    expect(await running.child.exited).toEqual({ code: null, signal: "SIGKILL" });
  });
});
