/**
 * Checks that a process repeats. All checks of a process run at the multiples of their intervals, so that they wake an idle
 * process together: to wake it takes far more CPU than a check.
 */
interface Group {
  readonly checks: Set<() => void>;
  timer: NodeJS.Timeout;
}

const groups = new Map<number, Group>();

/**
 * Runs `check` at intervals until the returned function is called; a running check alone does not keep the process alive. An
 * error of the check ends the process.
 */
export function every(intervalMs: number, check: () => void): () => void {
  // The same function may be repeated several times, and each of them ends by itself.
  const own = (): void => check();
  let group = groups.get(intervalMs);
  if (group === undefined) {
    group = { checks: new Set(), timer: setTimeout(() => run(intervalMs), untilNextMs(intervalMs)).unref() };
    groups.set(intervalMs, group);
  }
  group.checks.add(own);
  return () => {
    if (!group.checks.delete(own) || group.checks.size > 0) return;
    clearTimeout(group.timer);
    if (groups.get(intervalMs) === group) groups.delete(intervalMs);
  };
}

function run(intervalMs: number): void {
  const group = groups.get(intervalMs);
  if (group === undefined) return;
  group.timer = setTimeout(() => run(intervalMs), untilNextMs(intervalMs)).unref();
  for (const check of group.checks) check();
}

/** A timer may fire a millisecond early. The next time is then not the one for which it has fired. */
function untilNextMs(intervalMs: number): number {
  const sinceMs = (performance.now() + 2) % intervalMs;
  return Math.ceil(intervalMs - sinceMs + 2);
}
