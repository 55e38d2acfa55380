import { readdirSync, readFileSync } from "node:fs";

/** Much longer than a process needs on a busy machine: it stops within milliseconds. */
const STOPPED_MS = 5_000;
const PAUSE_MS = 1;

/**
 * Sends SIGSTOP, and returns when every thread of the process has stopped. The signal alone is not enough: on a busy
 * machine a thread may still answer after it.
 */
export function stall(pid: number): void {
  process.kill(pid, "SIGSTOP");
  const deadlineMs = performance.now() + STOPPED_MS;
  while (!threadStates(pid).every((state) => state === "T" || state === "Z")) {
    if (performance.now() >= deadlineMs) throw new Error(`Process ${pid} still runs ${STOPPED_MS} ms after SIGSTOP.`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
}

function threadStates(pid: number): readonly (string | undefined)[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, "latin1");
    // The state follows the program's name, which is in parentheses and may contain any characters.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[0];
  });
}
