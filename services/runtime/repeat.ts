/** Repeats some work until stopped, one turn at a time. A turn that fails is logged; the next one follows as usual. */
import { setTimeout as delay } from "node:timers/promises";

export interface Repeated {
  stop(): Promise<void>;
}

export function repeat(
  options: {
    readonly everyMs: number;
    readonly what: string;
    readonly log: { warn(fields: object, message: string): void };
  },
  work: (stopping: AbortSignal) => Promise<unknown>,
): Repeated {
  const stopping = new AbortController();
  const { signal } = stopping;
  const run = async (): Promise<void> => {
    let lastReason = "";
    while (!signal.aborted) {
      try {
        await work(signal);
        lastReason = "";
      } catch (error) {
        // Logged once and not at each turn: what is missing may be away for hours.
        const reason = String(error);
        if (reason !== lastReason && !signal.aborted) options.log.warn({ err: error }, `${options.what} has failed`);
        lastReason = reason;
      }
      await delay(options.everyMs, undefined, { signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
