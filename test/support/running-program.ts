import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { readFileSync } from "node:fs";

/** The longest wait for output. On a busy machine, a complete start takes more than half a minute. */
const OUTPUT_WAIT_MS = 120_000;

/** A program that a test started, with everything it has printed so far. */
export interface RunningProgram {
  process: ChildProcess;
  pid: number;
  /** Standard output and standard error, in the order of arrival. */
  output: () => string;
  /** Resolves with the match as soon as the output matches. Rejects when the program ends, or after two minutes. */
  waitFor: (pattern: RegExp) => Promise<RegExpExecArray>;
  /** Resolves to the exit code, or the signal's name, once all output is read. */
  ended: Promise<number | NodeJS.Signals>;
}

/** The environment of one of our programs: only `settings`, PATH, and the variables that make its start faster. */
export function programEnvironment(settings: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const { PATH, NODE_OPTIONS, NODE_COMPILE_CACHE } = process.env;
  return { PATH, NODE_OPTIONS, NODE_COMPILE_CACHE, ...settings };
}

/** Starts a program without a shell. */
export function runProgram(command: string, args: string[], options: SpawnOptions = {}): RunningProgram {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  let output = "";
  const listeners = new Set<() => void>();
  const add = (chunk: string) => {
    output += chunk;
    for (const listener of listeners) listener();
  };
  child.stdout?.setEncoding("utf8").on("data", add);
  child.stderr?.setEncoding("utf8").on("data", add);
  const ended = new Promise<number | NodeJS.Signals>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(signal ?? code ?? -1));
  });
  const waitFor = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const finish = (act: () => void) => {
        clearTimeout(timer);
        listeners.delete(check);
        act();
      };
      const refuse = (why: string) => finish(() => reject(new Error(`${why} without ${pattern}; output:\n${output}`)));
      const check = () => {
        const match = pattern.exec(output);
        if (match !== null) finish(() => resolve(match));
      };
      const timer = setTimeout(() => refuse("Two minutes passed"), OUTPUT_WAIT_MS);
      listeners.add(check);
      child.once("close", () => refuse("The program ended"));
      check();
    });
  return { process: child, pid: child.pid ?? 0, output: () => output, waitFor, ended };
}

/** True while a process with that id runs. An ended process whose parent has not read its exit code (a zombie) does not run. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform !== "linux" || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
