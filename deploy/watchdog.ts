import { type ChildProcess, spawn } from "node:child_process";
import { deployLimits } from "./limits.ts";

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
  // In a session of its own, so that a signal to the parent's whole process group spares it.
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
 * Sees to it that the process does not outlive this one, even after kill -9 of this one: it gets `signal`, and SIGKILL
 * when that has not ended it in time. `"0"` sends nothing first, for children that notice by themselves. Returns the
 * function that ends the watch; call it when the process has ended, because its id may be given to another.
 */
export function watchOrphan(pid: number, signal: "INT" | "TERM" | "0"): () => void {
  running().stdin?.write(`watch ${pid} ${signal}\n`);
  return () => {
    running().stdin?.write(`forget ${pid}\n`);
  };
}
