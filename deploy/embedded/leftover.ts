import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { deployLimits } from "../limits.ts";

/** The command line of a process, or an empty string when there is no such process. */
function commandLine(pid: number): string {
  try {
    if (existsSync("/proc/self")) return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
    return execFileSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" });
  } catch {
    return "";
  }
}

/**
 * Ends a server that a killed start left running, and removes its pid file. The server is known as ours by `marker`, a
 * part of its command line that names our data folder: process ids are reused, so the id alone proves nothing.
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
    signal(pid, "SIGINT");
    while (isOurs() && Date.now() < deadlineMs) await delay(deployLimits.readyPollMs);
    if (isOurs()) signal(pid, "SIGKILL");
    while (isOurs()) await delay(deployLimits.readyPollMs);
  }
  rmSync(options.pidFile, { force: true });
  return found;
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It ended in between, which is what was wanted.
  }
}
