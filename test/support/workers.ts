/** How many test files run at once. */
import { spawnSync } from "node:child_process";

/**
 * The smallest machine on which the tests must pass has two cores. Tests wait much, so there are twice as many workers as cores.
 * Five workers need a tenth less time, but with five a slower machine would be too busy for some tests.
 */
const WORKERS = 4;
/** Tests start hundreds of processes. Where a start needs much CPU, three workers keep both cores busy. */
const WORKERS_WHERE_STARTS_ARE_SLOW = 3;
/** An ordinary machine starts a small program within two milliseconds, and one behind a slow hypervisor takes seven or more. */
const SLOW_START_MS = 4;
const STARTS = 20;

/** Starts a small program several times, and decides by the duration. Prints the number when it is not the usual one. */
export function workers(): number {
  const startedAtMs = performance.now();
  for (let index = 0; index < STARTS; index += 1) spawnSync("true");
  const startMs = (performance.now() - startedAtMs) / STARTS;
  if (startMs < SLOW_START_MS) return WORKERS;
  process.stderr.write(
    `This machine takes ${startMs.toFixed(1)} ms to start a small program: ${WORKERS_WHERE_STARTS_ARE_SLOW} test files run at once.\n`,
  );
  return WORKERS_WHERE_STARTS_ARE_SLOW;
}
