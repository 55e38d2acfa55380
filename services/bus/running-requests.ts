/** The requests that one process carries out for one operation: it says of each that it works on it (`interim.ts`). */
import { BUS_LIMITS } from "./limits.ts";

export class RunningRequests {
  readonly #sayWorking: (inbox: string) => void;
  readonly #running = new Map<string | symbol, Promise<void>>();

  constructor(sayWorking: (inbox: string) => void) {
    this.#sayWorking = sayWorking;
  }

  get size(): number {
    return this.#running.size;
  }

  has(inbox: string | undefined): boolean {
    return inbox !== undefined && this.#running.has(inbox);
  }

  /** Runs the work of a request; `inbox` is where its caller waits, undefined where no caller waits. Never rejects. */
  run(inbox: string | undefined, work: () => Promise<void>): void {
    const key = inbox ?? Symbol("no inbox");
    const timer = inbox === undefined ? undefined : setTimeout(() => say(inbox), BUS_LIMITS.workingAfterMs);
    const say = (caller: string): void => {
      this.#sayWorking(caller);
      timer?.refresh();
    };
    const ended = work().finally(() => {
      clearTimeout(timer);
      this.#running.delete(key);
    });
    this.#running.set(key, ended);
  }

  /** Resolves when none runs, and after `BUS_LIMITS.finishMs` at the latest. */
  async finished(): Promise<void> {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, BUS_LIMITS.finishMs);
    await Promise.race([Promise.allSettled(this.#running.values()), late.promise]);
    clearTimeout(timer);
  }
}
