/** Waits until the display of a station shows a state, as the process `display-probe` reports it. */
import type { BenchProcess, BenchWorld } from "./bench-world.ts";
import type { ShownDisplay } from "./load/display-probe.ts";

export interface DisplayWatch {
  readonly pid: number;
  /** Resolves when the station's display shows this state for this order; rejects after 30 seconds. */
  next(stationId: number, state: ShownDisplay["state"], orderDisplayNumber: number): Promise<ShownDisplay>;
  stop(): Promise<void>;
}

const TIMEOUT_MS = 30_000;

export async function watchDisplays(world: BenchWorld): Promise<DisplayWatch> {
  const probe: BenchProcess = await world.startProcess("display-probe", "test/bench/load/display-probe.ts", []);
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
          reject(
            new Error(`Station ${stationId} did not show "${state}" in time for its order ${orderDisplayNumber}.`),
          );
        }, TIMEOUT_MS);
        waiting.set(key, (shown) => {
          clearTimeout(timer);
          resolve(shown);
        });
      }),
    stop: () => probe.stop(),
  };
}
