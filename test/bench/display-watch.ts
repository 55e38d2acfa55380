/** Waits for what the probe's displays show. */
import type { BenchProcess, Ground } from "./bench-world.ts";
import type { ShownDisplay } from "./load/display-probe.ts";

export interface DisplayWatch {
  readonly pid: number;
  /** Resolves when the station's display first shows that state of that order; rejects when it does not within thirty seconds. */
  next(stationId: number, state: ShownDisplay["state"], orderDisplayNumber: number): Promise<ShownDisplay>;
  stop(): Promise<void>;
}

const SHOWN_LIMIT_MS = 30_000;

export async function watchDisplays(ground: Ground): Promise<DisplayWatch> {
  const probe: BenchProcess = await ground.startProcess("display-probe", "test/bench/load/display-probe.ts", []);
  const waiting = new Map<string, (shown: ShownDisplay) => void>();
  const keyOf = (stationId: number, state: string, order: number): string => `${stationId} ${state} ${order}`;
  probe.listen((message) => {
    const shown = message as ShownDisplay;
    const key = keyOf(shown.stationId, shown.state, shown.orderDisplayNumber);
    waiting.get(key)?.(shown);
    waiting.delete(key);
  });
  return {
    pid: probe.pid,
    next: (stationId, state, orderDisplayNumber) =>
      new Promise((resolve, reject) => {
        const key = keyOf(stationId, state, orderDisplayNumber);
        const timer = setTimeout(() => {
          waiting.delete(key);
          reject(new Error(`Station ${stationId} never showed "${state}" for its order ${orderDisplayNumber}.`));
        }, SHOWN_LIMIT_MS);
        waiting.set(key, (shown) => {
          clearTimeout(timer);
          resolve(shown);
        });
      }),
    stop: () => probe.stop(),
  };
}
