import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const PROGRAM = join(import.meta.dirname, "programs", "lifecycle.ts");

interface Ending {
  readonly code: number | null;
  readonly messages: readonly unknown[];
  readonly lines: readonly string[];
  readonly errors: string;
}

/** Runs the program in `mode`, and calls `act` when the program has reported that it is ready. */
async function run(mode: string, act?: (child: ReturnType<typeof fork>) => void): Promise<Ending> {
  const child = fork(PROGRAM, [mode], { stdio: ["ignore", "pipe", "pipe", "ipc"] });
  const messages: unknown[] = [];
  let output = "";
  let errors = "";
  child.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  child.on("message", (message) => {
    messages.push(message);
    if (act !== undefined) act(child);
  });
  const [code] = (await once(child, "exit")) as [number | null];
  const lines = output.split("\n").filter((line) => line.startsWith("step "));
  return { code, messages, lines, errors };
}

describe("a process", () => {
  it("starts its steps in order, reports that it is ready, and stops them in reverse on SIGTERM", async () => {
    const { code, messages, lines } = await run("normal", (child) => child.kill("SIGTERM"));
    expect(messages).toEqual([{ ready: true, port: 7 }]);
    expect(lines).toEqual(["step one starts", "step two starts", "step two stops", "step one stops"]);
    expect(code).toBe(0);
  });

  it("SIGINT, or the end of its parent: it stops its steps in reverse too", async () => {
    const interrupted = await run("normal", (child) => child.kill("SIGINT"));
    const orphaned = await run("normal", (child) => child.disconnect());
    for (const { code, lines } of [interrupted, orphaned]) {
      expect(lines.slice(-2)).toEqual(["step two stops", "step one stops"]);
      expect(code).toBe(0);
    }
  });

  it("a step that cannot start: one sentence, and the started steps are stopped", async () => {
    const { code, messages, lines, errors } = await run("refused");
    expect(messages).toEqual([{ ready: false, code: "port_taken", message: "Port 80 is taken." }]);
    expect(errors).toBe("Port 80 is taken.\n");
    expect(lines).toEqual(["step one starts", "step one stops"]);
    expect(code).toBe(3);
  });

  it("an error with a known cause and next step: one sentence, and the exit code of such errors", async () => {
    const started = await run("known");
    expect(started.errors).toBe("program cannot go on: the disk is full (ENOSPC); make room on it.\n");
    const early = await run("early");
    expect(early.errors).toBe("The program cannot go on: the disk is full (ENOSPC); make room on it.\n");
    expect([started.code, early.code]).toEqual([1, 1]);
  });

  it("an unexpected error, at the start or later: one sentence without a stack trace, and exit code 70", async () => {
    for (const mode of ["broken", "rejected", "thrown"]) {
      const { code, messages, errors, lines } = await run(mode);
      expect(messages.at(-1)).toMatchObject({ ready: false, code: "unexpected" });
      expect(errors).toBe("program met an unexpected error; its log has the details.\n");
      expect(lines.at(-1)).toBe("step one stops");
      expect(code).toBe(70);
    }
  });

  it("a signal during a step of the start: it completes the step, and stops all steps", async () => {
    const { code, lines } = await run("slow", (child) => child.kill("SIGTERM"));
    expect(lines).toEqual(["step one starts", "step two starts", "step two stops", "step one stops"]);
    expect(code).toBe(0);
  });

  it.concurrent.each(["SIGINT", "SIGTERM"] as const)(
    "a step of the start hangs, and then %s: it abandons the step, and ends within two seconds",
    async (signal) => {
      let signalledAtMs = 0;
      const { code, lines } = await run("hangs", (child) => {
        signalledAtMs = performance.now();
        child.kill(signal);
      });
      expect(performance.now() - signalledAtMs).toBeLessThan(2_000);
      expect(lines).toEqual(["step one starts", "step one stops"]);
      expect(code).toBe(0);
    },
  );

  it.concurrent("a step takes long to stop: it ends within two seconds of SIGINT, and waits after SIGTERM", async () => {
    let signalledAtMs = 0;
    const interrupted = await run("drains", (child) => {
      signalledAtMs = performance.now();
      child.kill("SIGINT");
    });
    expect(performance.now() - signalledAtMs).toBeLessThan(2_000);
    expect(interrupted).toMatchObject({ code: 1, lines: ["step one starts", "step two starts"] });
    const drained = await run("drains", (child) => child.kill("SIGTERM"));
    expect(drained.lines.slice(2)).toEqual(["step two stops", "step one stops"]);
    expect(drained.code).toBe(0);
  });

  it.concurrent("SIGINT follows SIGTERM: it ends within two seconds", async () => {
    let signalledAtMs = 0;
    const { code } = await run("drains", (child) => {
      child.kill("SIGTERM");
      setTimeout(() => {
        signalledAtMs = performance.now();
        child.kill("SIGINT");
      }, 100);
    });
    expect(performance.now() - signalledAtMs).toBeLessThan(2_000);
    expect(code).toBe(1);
  });
});
