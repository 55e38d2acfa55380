/** Child processes of this process: a log keeps their output, and none of them outlives this process for long. */
import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { UserError } from "../services/runtime/user-error.ts";
import { deployLimits } from "./limits.ts";
import { LINE_FEED, type LogSpec, logIsClosed, RotatingLog } from "./log-files.ts";

/** How a process ended. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

interface ChildOptions {
  command: string;
  args: string[];
  spawn: Pick<SpawnOptions, "cwd" | "env" | "uid" | "gid">;
  /** Whether the child reports its state to this process over a channel of Node. */
  ipc?: boolean;
  /** The log of the child's output. Without a log this process keeps only the last lines, in memory. */
  log?: LogSpec | undefined;
  /** Asks the child to end in order. */
  stopSignal: "SIGINT" | "SIGTERM";
  /** After this time a child that was asked to end is killed. */
  stopMs: number;
  /** Ends the child at once. SIGKILL, unless the program answers another signal by ending itself and its children. */
  immediateSignal?: "SIGQUIT";
  /** The signal that the watchdog sends when this process was killed; `"0"` for a child that notices it without a signal. */
  orphanSignal: "INT" | "TERM" | "0";
}

/** A child process, which never outlives this process for long. */
export interface Child {
  pid: number;
  process: ChildProcess;
  /** Resolves when the child has ended. Never rejects. */
  exited: Promise<Exit>;
  output: ChildOutput;
  /** True from the first `stop` or `kill` on: the end of the child is then expected. */
  isStopping: () => boolean;
  /** Asks the child to end. Kills it after `stopMs`, or ends it at once when `immediately` is aborted. Resolves at its end. */
  stop: (immediately?: AbortSignal) => Promise<Exit>;
  /** Sends SIGKILL. Resolves when the child has ended. */
  kill: () => Promise<Exit>;
}

/** Starts a process. Rejects with the system's error when it cannot be executed. */
export async function startChild(options: ChildOptions): Promise<Child> {
  // In a separate session: Ctrl-C in a terminal must reach the supervisor only, which then stops its children in order.
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
  void exited.then(watchOrphan(pid, options.orphanSignal));

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

/**
 * Waits until a new child is ready. Resolves to undefined when it is ready, or to its exit when it ended before. When
 * `stopping` is aborted, or after `timeoutMs`, it ends the child and throws UserError `<code>_stopped` or `<code>_timeout`.
 */
export async function untilReady(
  child: Child,
  server: {
    name: string;
    code: string;
    logFile: string;
    timeoutMs: number;
    stopping?: AbortSignal | undefined;
    /** Checks once. `untilReady` calls it until it returns true. */
    isReady: (signal: AbortSignal) => Promise<boolean> | boolean;
  },
): Promise<Exit | undefined> {
  const { name, code, timeoutMs, stopping, isReady } = server;
  const ended = new AbortController();
  void child.exited.then(() => ended.abort());
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([ended.signal, timeout, ...(stopping === undefined ? [] : [stopping])]);
  while (!signal.aborted) {
    if (await isReady(signal)) return undefined;
    await delay(deployLimits.readyPollMs, undefined, { signal }).catch(() => undefined);
  }
  if (ended.signal.aborted) return await child.exited;
  await child.stop();
  await child.output.logged;
  const [what, end] =
    stopping?.aborted === true
      ? ["was stopped while starting", "stopped"]
      : [`was not ready within ${timeoutMs / 1_000} s`, "timeout"];
  throw new UserError(`${name} ${what}; its log is ${server.logFile}.`, { code: `${code}_${end}` });
}

/** The end of a process for a sentence: "ended with code 1" or "was ended by SIGKILL". */
export function describeExit(exit: Exit): string {
  return exit.signal === null ? `ended with code ${exit.code}` : `was ended by ${exit.signal}`;
}

interface ChildOutput {
  /** The end of the output. */
  tail: () => string;
  /** Resolves when the child has ended and its log has the whole output. Never rejects. */
  logged: Promise<void>;
}

/** Reads a child's output without a pause, so that the child never waits. Without a log it keeps only the last lines, in memory. */
function keepOutput(child: ChildProcess, log: LogSpec | undefined): ChildOutput {
  const file = log === undefined ? undefined : new RotatingLog(log);
  let tail = Buffer.alloc(0);
  const keep = (lines: Uint8Array): void => {
    tail = Buffer.concat([tail, lines]).subarray(-deployLimits.logTailBytes);
    file?.write(lines);
  };
  const streams = [child.stdout, child.stderr].filter((stream) => stream !== null);
  const allRead = Promise.all(streams.map((stream) => readLines(stream, keep)));
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  const logged = (async () => {
    await exited;
    // A process that the child has started may hold the pipe open for longer.
    await logIsClosed(allRead);
    await file?.close();
  })();
  return { tail: () => tail.toString("utf8"), logged };
}

/** Calls `keep` with whole lines as they arrive, and at the end with a last line that has no line feed. */
function readLines(stream: Readable, keep: (lines: Uint8Array) => void): Promise<void> {
  let partial: Buffer[] = [];
  let partialBytes = 0;
  const keepPartial = (end: Uint8Array): void => {
    const lines = Buffer.concat([...partial, end]);
    partial = [];
    partialBytes = 0;
    if (lines.length > 0) keep(lines);
  };
  return new Promise((resolve) => {
    stream.on("data", (chunk: Buffer) => {
      const end = chunk.lastIndexOf(LINE_FEED) + 1;
      if (end > 0) keepPartial(chunk.subarray(0, end));
      const rest = chunk.subarray(end);
      if (rest.length === 0) return;
      partial.push(rest);
      partialBytes += rest.length;
      // A child may never end its line, so a line that is too long is divided.
      if (partialBytes > deployLimits.logWriteBytes / 2) keepPartial(Buffer.from("\n"));
    });
    stream.once("error", () => undefined);
    stream.once("close", () => {
      if (partialBytes > 0) keepPartial(Buffer.from("\n"));
      resolve();
    });
  });
}

/**
 * The watchdog: a shell that outlives its parent by seconds. It reads from a pipe which processes to watch. The pipe closes
 * when the parent ends, also by kill -9. Then the shell sends each process its signal, and after the grace time kills those
 * that still run. The watchdog is a shell because every system with a terminal has one, and a shell needs little memory.
 */
const SCRIPT = `
trap '' INT TERM HUP
watched=
while read -r verb pid signal; do
  kept=
  for entry in $watched; do
    [ "\${entry%:*}" = "$pid" ] || kept="$kept $entry"
  done
  watched=$kept
  [ "$verb" = watch ] && watched="$watched $pid:$signal"
done
for entry in $watched; do kill -s "\${entry#*:}" "\${entry%:*}" 2>/dev/null; done
waited=0
while [ "$waited" -lt "$1" ]; do
  alive=
  for entry in $watched; do kill -s 0 "\${entry%:*}" 2>/dev/null && alive="$alive \${entry%:*}"; done
  [ -z "$alive" ] && exit 0
  sleep 1
  waited=$((waited + 1))
done
kill -s KILL $alive 2>/dev/null
`;

let watchdog: ChildProcess | undefined;

function runningWatchdog(): ChildProcess {
  if (watchdog !== undefined && watchdog.exitCode === null && watchdog.signalCode === null) return watchdog;
  const graceSeconds = String(Math.ceil(deployLimits.orphanGraceMs / 1000));
  // In a separate session, so that a signal to the parent's process group does not reach the watchdog.
  watchdog = spawn("/bin/sh", ["-c", SCRIPT, "watchdog", graceSeconds], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  watchdog.on("error", () => undefined);
  watchdog.stdin?.on("error", () => undefined);
  // The watchdog must never keep this process alive.
  watchdog.unref();
  if (watchdog.stdin !== null && "unref" in watchdog.stdin && typeof watchdog.stdin.unref === "function")
    watchdog.stdin.unref();
  return watchdog;
}

/**
 * Makes sure that a child does not outlive this process, even after kill -9 of this process: the watchdog sends the child
 * `signal` (nothing for `"0"`), and SIGKILL when the child still runs after the grace time. Returns a function that ends
 * the watch. Call it when the child has ended, because the system may give its id to another process.
 */
function watchOrphan(pid: number, signal: "INT" | "TERM" | "0"): () => void {
  runningWatchdog().stdin?.write(`watch ${pid} ${signal}\n`);
  return () => {
    runningWatchdog().stdin?.write(`forget ${pid}\n`);
  };
}

/** The command line of a process; empty when there is no such process. */
function commandLine(pid: number): string {
  try {
    if (existsSync("/proc/self")) return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
    return execFileSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" });
  } catch {
    return "";
  }
}

/**
 * Ends a server that a killed start left running, and removes its pid file. Systems reuse process ids, so the id alone
 * proves nothing: the command line must also contain `marker`, which names the data folder. Returns true when such a
 * server was running.
 */
export async function stopLeftover(options: { pidFile: string; marker: string }): Promise<boolean> {
  const firstLine = existsSync(options.pidFile) ? readFileSync(options.pidFile, "utf8").split("\n")[0] : undefined;
  const pid = Number.parseInt(firstLine ?? "", 10);
  const isOurs = () => commandLine(pid).includes(options.marker);
  const found = pid > 0 && isOurs();
  if (found) {
    const deadlineMs = Date.now() + deployLimits.leftoverStopMs;
    // SIGINT is a fast, orderly shutdown for PostgreSQL and for nats-server.
    sendSignal(pid, "SIGINT");
    while (isOurs() && Date.now() < deadlineMs) await delay(deployLimits.readyPollMs);
    if (isOurs()) sendSignal(pid, "SIGKILL");
    while (isOurs()) await delay(deployLimits.readyPollMs);
  }
  rmSync(options.pidFile, { force: true });
  return found;
}

function sendSignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has ended already.
  }
}
