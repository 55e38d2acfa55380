/** Steps start in order and stop in the reverse order, and none keeps running. */
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Step, type StepControl, together } from "../../deploy/supervisor.ts";
import { runProgram } from "../support/running-program.ts";

/** Both outputs go into one pipe. From two pipes the test might read the lines in another order than they were written. */
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
  test("a signal: the steps stop in the reverse order of their start", async () => {
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

  test("a step that cannot start: the started steps are stopped, and its sentence and exit code are the system's", async () => {
    const program = run("broken=second");
    expect(await program.ended).toBe(3);
    expect(lines(program.output())).toEqual(["start first", "start second", "second cannot start.", "stop first"]);
  });

  test("a part that ends without a stop: one sentence, everything is stopped, and its exit code is the system's", async () => {
    const program = run("dies=second");
    expect(await program.ended).toBe(4);
    expect(lines(program.output()).slice(4)).toEqual(["second died.", "stop third", "stop second", "stop first"]);
  });

  test("a second signal: it ends the draining", async () => {
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

  test("a step that does not stop in time: a sentence names it, and the others are still stopped", async () => {
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

  test("the parent process ends: everything is stopped", async () => {
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

describe("steps that start together", () => {
  const control: StepControl = { fail: () => undefined, stopping: new AbortController().signal };

  function step(name: string, happened: string[], error?: Error): Step {
    return {
      name,
      start: async () => {
        happened.push(`${name} starts`);
        await Promise.resolve();
        if (error !== undefined) throw error;
        return async () => {
          happened.push(`${name} stops`);
        };
      },
    };
  }

  test("all steps can start: they start side by side and stop in reverse", async () => {
    const happened: string[] = [];
    const stop = await together("all", [step("a", happened), step("b", happened)]).start(control);
    await stop?.(new AbortController().signal);
    expect(happened).toEqual(["a starts", "b starts", "b stops", "a stops"]);
  });

  test("one step cannot start: the others are stopped, and its error is that of the whole step", async () => {
    const happened: string[] = [];
    const steps = [step("a", happened), step("b", happened, new Error("taken")), step("c", happened)];
    await expect(together("all", steps).start(control)).rejects.toThrow("taken");
    expect(happened).toEqual(["a starts", "b starts", "c starts", "c stops", "a stops"]);
  });
});
