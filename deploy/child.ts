import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { type ChildOutput, keepOutput } from "./child-output.ts";
import type { LogSpec } from "./log-files.ts";
import { watchOrphan } from "./watchdog.ts";

/** How a process ended. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface ChildOptions {
  command: string;
  args: string[];
  spawn: Pick<SpawnOptions, "cwd" | "env" | "uid" | "gid">;
  /** A child that reports its state to its parent. */
  ipc?: boolean;
  /** Where its output goes; without it, only its last lines are kept in memory. */
  log?: LogSpec | undefined;
  /** Asks the process to end in good order. */
  stopSignal: "SIGINT" | "SIGTERM";
  /** How long it may take over that before it is killed. */
  stopMs: number;
  /** Ends it when no caller waits any more; SIGKILL unless it can end at once by itself, and take its own children with it. */
  immediateSignal?: "SIGQUIT";
  /** What it gets when this process is killed; `"0"` when it notices by itself. */
  orphanSignal: "INT" | "TERM" | "0";
}

/** A process that belongs to this one and never outlives it for long. */
export interface Child {
  pid: number;
  process: ChildProcess;
  /** Resolves when it has ended. Never rejects. */
  exited: Promise<Exit>;
  output: ChildOutput;
  /** True from the first `stop` or `kill` on: the end is then no surprise. */
  isStopping: () => boolean;
  /** Asks it to end, kills it after `stopMs`, ends it as soon as `immediately` is aborted, and resolves when it has ended. */
  stop: (immediately?: AbortSignal) => Promise<Exit>;
  /** SIGKILL; resolves when it has ended. */
  kill: () => Promise<Exit>;
}

/** Starts a process. Rejects with the system's error when it cannot be executed. */
export async function startChild(options: ChildOptions): Promise<Child> {
  // In a session of its own: Ctrl-C in a terminal must reach the supervisor only, which then stops its children in order.
  const child = spawn(options.command, options.args, {
    ...options.spawn,
    stdio: ["ignore", "pipe", "pipe", ...(options.ipc === true ? (["ipc"] as const) : [])],
    detached: true,
  });
  const output = keepOutput(child, options.log);
  const exited = new Promise<Exit>((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  // Later errors (a failed kill or send) show as the exit that follows them.
  child.on("error", () => undefined);
  const pid = child.pid ?? 0;
  const forget = watchOrphan(pid, options.orphanSignal);
  void exited.then(forget);

  let stopping = false;
  const kill = async () => {
    stopping = true;
    child.kill("SIGKILL");
    return await exited;
  };
  const stop = async (immediately?: AbortSignal) => {
    stopping = true;
    const endAtOnce = () => child.kill(options.immediateSignal ?? "SIGKILL");
    if (immediately?.aborted === true) endAtOnce();
    else child.kill(options.stopSignal);
    const timer = setTimeout(() => child.kill("SIGKILL"), options.stopMs);
    immediately?.addEventListener("abort", endAtOnce, { once: true });
    const exit = await exited;
    clearTimeout(timer);
    immediately?.removeEventListener("abort", endAtOnce);
    return exit;
  };
  return { pid, process: child, exited, output, isStopping: () => stopping, stop, kill };
}

/** The end of a process for a sentence: "ended with code 1" or "was ended by SIGKILL". */
export function describeExit(exit: Exit): string {
  return exit.signal === null ? `ended with code ${exit.code}` : `was ended by ${exit.signal}`;
}
