/**
 * How fast the cashiers of a trial work. A fault itself needs CPU: a process starts, the servers elect. If the machine has
 * no CPU left for this, every answer is late, and the trial measures the machine. So on a slow machine the cashiers wait
 * longer before the next guest.
 */
import { cpus } from "node:os";
import { setTimeout as delay } from "node:timers/promises";

/** The share of all processors that may be busy while no fault runs. */
const BUSY_AT_MOST = 0.75;
const MEASURE_MS = 4_000;
/** The pause before the next guest. With the shortest one nine stations keep two fast processors busy. */
const SHORTEST_MS = 400;
const LONGEST_MS = 6_000;
const STEP = 1.6;

export class Pace {
  nextGuestMs = SHORTEST_MS;

  /** Call it while all stations work. Resolves to a sentence for the trial's log. */
  async fitToMachine(): Promise<string> {
    for (;;) {
      const busy = await measureBusy();
      if (busy <= BUSY_AT_MOST || this.nextGuestMs >= LONGEST_MS)
        return `A cashier waits ${Math.round(this.nextGuestMs)} ms before the next guest: the processors are ${Math.round(busy * 100)} % busy.`;
      this.nextGuestMs = Math.min(this.nextGuestMs * STEP, LONGEST_MS);
    }
  }
}

/** The share of the time in which the processors of this machine work, from 0 to 1. */
async function measureBusy(): Promise<number> {
  const before = processorTimes();
  await delay(MEASURE_MS);
  const after = processorTimes();
  return 1 - (after.idleMs - before.idleMs) / (after.totalMs - before.totalMs);
}

function processorTimes(): { readonly idleMs: number; readonly totalMs: number } {
  const all = cpus().map(({ times }) => times);
  const idleMs = all.reduce((sum, { idle }) => sum + idle, 0);
  const totalMs = all.reduce((sum, { idle, user, nice, sys, irq }) => sum + idle + user + nice + sys + irq, 0);
  return { idleMs, totalMs };
}
