import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runProgram } from "../support/running-program.ts";

/** With both outputs in one pipe: what comes through two may be read in another order than it was written. */
const run = (...args: string[]) =>
  runProgram("sh", [
    "-c",
    'exec "$0" "$@" 2>&1',
    process.execPath,
    join(import.meta.dirname, "programs", "steps.ts"),
    ...args,
  ]);
const lines = (output: string) => output.trim().split("\n");

describe("the supervisor", () => {
  test("starts in order and stops in reverse order at a signal", async () => {
    const program = run();
    await program.waitFor(/all up/);
    program.process.kill("SIGTERM");
    expect(await program.ended).toBe(0);
    expect(lines(program.output())).toEqual([
      "start first",
      "start second",
      "start third",
      "all up",
      "Stopping (SIGTERM) …",
      "stop third",
      "stop second",
      "stop first",
      "Stopped.",
    ]);
  });

  test("a step that cannot start: its sentence, what was started is stopped, its exit code", async () => {
    const program = run("broken=second");
    expect(await program.ended).toBe(3);
    expect(lines(program.output())).toEqual(["start first", "start second", "second cannot start.", "stop first"]);
  });

  test("something that ends by itself: one sentence, everything is stopped, its exit code", async () => {
    const program = run("dies=second");
    expect(await program.ended).toBe(4);
    expect(lines(program.output()).slice(4)).toEqual(["second died.", "stop third", "stop second", "stop first"]);
  });

  test("a second signal ends the draining", async () => {
    const program = run("slow=second");
    await program.waitFor(/all up/);
    program.process.kill("SIGINT");
    await program.waitFor(/stop second/);
    program.process.kill("SIGINT");
    await program.ended;
    expect(lines(program.output()).slice(4)).toEqual([
      "Stopping (SIGINT) …",
      "stop third",
      "stop second",
      "cut second",
      "stop first",
      "Stopped.",
    ]);
  });

  test("a step that does not stop in time is named, and the others are stopped all the same", async () => {
    const program = run("stuck=third");
    await program.waitFor(/all up/);
    program.process.kill("SIGTERM");
    expect(await program.ended).toBe(1);
    expect(lines(program.output()).slice(5)).toEqual([
      "stop third",
      "third did not stop within 2 s.",
      "stop second",
      "stop first",
    ]);
  });

  test("the end of the parent process stops everything", async () => {
    const program = runProgram(process.execPath, [join(import.meta.dirname, "programs", "steps.ts")], {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    await program.waitFor(/all up/);
    // Node emits no `close` for a child whose channel the parent closed, so this test waits for `exit`.
    const exit = once(program.process, "exit");
    program.process.disconnect();
    expect(await exit).toEqual([0, null]);
    await program.waitFor(/stop first\nStopped\./);
  });
});
