/** Processes that belong to this one: what they print is in their log, and none of them outlives this one for long. */
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
  /** A child that reports its state to its parent. */
  ipc?: boolean;
  /** Where its output goes; without it, only its last lines are kept in memory. */
  log?: LogSpec | undefined;
  /** Asks the process to end in good order. */
  stopSignal: "SIGINT" | "SIGTERM";
  /** How long it may take over that before it is killed. */
  stopMs: number;
  /** Ends it at once; SIGKILL unless the program can end at once by itself, and take its children with it. */
  immediateSignal?: "SIGQUIT";
  /** Its signal when this process is killed; `"0"` when it notices by itself. */
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
 * Waits until a child that has just been started is ready. Resolves to undefined, or to how the child ended. Ends the child
 * and throws UserError `<code>_stopped` when everything is to stop meanwhile, and `<code>_timeout` when it takes too long.
 */
export async function untilReady(
  child: Child,
  server: {
    name: string;
    code: string;
    logFile: string;
    timeoutMs: number;
    stopping?: AbortSignal | undefined;
    /** Checks once; it is repeated until it is true. */
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
  /** The last of what it has printed. */
  tail: () => string;
  /** Resolves when it has ended and everything that it printed is in its log. Never rejects. */
  logged: Promise<void>;
}

/** Reads what a child prints, all the time, so that the child never waits. Without a log only its last lines are kept, in memory. */
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

/** Calls `keep` with whole lines as they come, and at the end with what has no line feed. */
function readLines(stream: Readable, keep: (lines: Uint8Array) => void): Promise<void> {
  let started: Buffer[] = [];
  let startedBytes = 0;
  const keepStarted = (end: Uint8Array): void => {
    const lines = Buffer.concat([...started, end]);
    started = [];
    startedBytes = 0;
    if (lines.length > 0) keep(lines);
  };
  return new Promise((resolve) => {
    stream.on("data", (chunk: Buffer) => {
      const end = chunk.lastIndexOf(LINE_FEED) + 1;
      if (end > 0) keepStarted(chunk.subarray(0, end));
      const rest = chunk.subarray(end);
      if (rest.length === 0) return;
      started.push(rest);
      startedBytes += rest.length;
      // A line without an end is no line.
      if (startedBytes > deployLimits.logWriteBytes / 2) keepStarted(Buffer.from("\n"));
    });
    stream.once("error", () => undefined);
    stream.once("close", () => {
      if (startedBytes > 0) keepStarted(Buffer.from("\n"));
      resolve();
    });
  });
}

/**
 * A shell that outlives its parent by seconds. It reads which processes to watch from a pipe; the pipe closes when
 * the parent ends, however it ends, kill -9 included. It then sends each process its signal, and kills what is left
 * after the grace time. A shell, because every system with a terminal has one, and it costs next to nothing.
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

function running(): ChildProcess {
  if (watchdog !== undefined && watchdog.exitCode === null && watchdog.signalCode === null) return watchdog;
  const graceSeconds = String(Math.ceil(deployLimits.orphanGraceMs / 1000));
  // In a separate session, so that a signal to the parent's whole process group spares it.
  watchdog = spawn("/bin/sh", ["-c", SCRIPT, "watchdog", graceSeconds], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  watchdog.on("error", () => undefined);
  watchdog.stdin?.on("error", () => undefined);
  // It must never keep this process alive.
  watchdog.unref();
  if (watchdog.stdin !== null && "unref" in watchdog.stdin && typeof watchdog.stdin.unref === "function")
    watchdog.stdin.unref();
  return watchdog;
}

/**
 * Makes sure that the process does not outlive this one, even after kill -9 of this one: it gets `signal`, and SIGKILL
 * when that has not ended it in time. `"0"` sends nothing first, for children that notice by themselves. Returns the
 * function that ends the watch; call it when the process has ended, because its id may be given to another.
 */
function watchOrphan(pid: number, signal: "INT" | "TERM" | "0"): () => void {
  running().stdin?.write(`watch ${pid} ${signal}\n`);
  return () => {
    running().stdin?.write(`forget ${pid}\n`);
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
 * Ends a server that a killed start left running, and removes its pid file. The server is recognised by `marker`, a
 * part of its command line that names the data folder: process ids are reused, so the id alone proves nothing.
 * Returns true when there was one.
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
    // It ended in between, which is what was wanted.
  }
}
