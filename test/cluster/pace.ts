/**
 * How fast the people and robots of a trial work. A fault itself needs CPU: a process starts, the servers elect. If the machine
 * has no CPU left for this, every answer is late, and the trial measures the machine. So on a slow machine they all wait longer
 * before the next guest, task or file.
 */
import { cpus } from "node:os";
import { setTimeout as delay } from "node:timers/promises";

/** The share of all processors that may be busy while no fault runs: of two, a process that starts needs most of one. */
const BUSY_AT_MOST = 0.6;
const MEASURE_MS = 4_000;
/** Processes that have just started use more CPU for the same work. */
const WARM_UP_MS = 15_000;
/** The shortest pauses. With them nine stations keep two fast processors busy. */
const NEXT_GUEST_MS = 400;
const NEXT_TASK_MS = 1_000;
const NEXT_FILE_MS = 5_000;
const STEP = 1.6;
/** With longer pauses, too few collections would meet a fault. */
const SLOWEST = 15;

export class Pace {
  /** By how much each pause is longer than the shortest one. */
  #slowdown = 1;

  /** The pause of a cashier before the next guest. */
  get nextGuestMs(): number {
    return NEXT_GUEST_MS * this.#slowdown;
  }

  /** The pause of the robots before the next task. */
  get nextTaskMs(): number {
    return NEXT_TASK_MS * this.#slowdown;
  }

  /** The pause of the operator before the next upload. */
  get nextFileMs(): number {
    return NEXT_FILE_MS * this.#slowdown;
  }

  /** Call it while all stations work. Resolves to a sentence for the trial's log. */
  async fitToMachine(): Promise<string> {
    await delay(WARM_UP_MS);
    for (;;) {
      const busy = await measureBusy();
      if (busy <= BUSY_AT_MOST || this.#slowdown >= SLOWEST)
        return `A cashier waits ${Math.round(this.nextGuestMs)} ms before the next guest: the processors are ${Math.round(busy * 100)} % busy.`;
      this.#slowdown = Math.min(this.#slowdown * STEP, SLOWEST);
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
