/** How many test files run at once. */
import { spawnSync } from "node:child_process";

/**
 * Two cores are the smallest machine that the tests must pass on. Tests wait much, so twice as many workers as cores. Five take
 * a tenth less time, which is not worth what they cost on a slower machine, where a test then meets too busy a one.
 */
const WORKERS = 4;
/** Tests start hundreds of processes. Where each start costs much, two workers keep both cores busy already. */
const WORKERS_WHERE_STARTS_ARE_SLOW = 2;
/** An ordinary machine starts a small program within two milliseconds, and one behind a slow hypervisor takes seven or more. */
const SLOW_START_MS = 4;
const STARTS = 20;

/** Starts a small program some times, and prints what follows from it when that is not the usual number. */
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
