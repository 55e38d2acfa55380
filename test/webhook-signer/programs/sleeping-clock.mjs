/**
 * Loaded before a program: while the program is stopped for longer than a second, its monotonic clock stops, as
 * it does on Linux while the machine sleeps. The time of day continues.
 */
const NOTICED_MS = 1_000;
const POLL_MS = 50;
const awake = performance.now.bind(performance);
let lastMs = awake();
let sleptMs = 0;
performance.now = () => {
  const nowMs = awake();
  if (nowMs - lastMs > NOTICED_MS) sleptMs += nowMs - lastMs;
  lastMs = nowMs;
  return nowMs - sleptMs;
};
setInterval(() => performance.now(), POLL_MS).unref();
