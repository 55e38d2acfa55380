/** A gateway process whose replica holds a whole population. */
import { setTimeout as delay } from "node:timers/promises";
import type { BenchWorld } from "./bench-world.ts";
import { DISPLAY_PATH } from "./polls.ts";
import type { PopulatedDevice } from "./population.ts";

export interface LoadedGateway {
  readonly pid: number;
  readonly port: number;
  /** From the start of the process until it answers the display of the last station with 200. */
  readonly loadMs: number;
  stop(): Promise<void>;
}

const LOAD_LIMIT_MS = 180_000;
const POLL_INTERVAL_MS = 100;

/** Resolves when the gateway answers the last device with 200. Rejects after three minutes. */
export async function startLoadedGateway(
  world: BenchWorld,
  devices: readonly PopulatedDevice[],
): Promise<LoadedGateway> {
  const startedAtMs = performance.now();
  const gateway = await world.startProcess("gateway", "gateway/main.ts", [], { HOST: "127.0.0.1", PORT: "0" });
  const port = Number(gateway.ready["port"]);
  const last = devices.at(-1);
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}${DISPLAY_PATH}`, {
      headers: { authorization: `Bearer ${last?.credential}` },
    });
    await response.arrayBuffer();
    if (response.status === 200) break;
    if (performance.now() - startedAtMs > LOAD_LIMIT_MS)
      throw new Error(`The gateway still answers ${response.status} after three minutes.`);
    await delay(POLL_INTERVAL_MS);
  }
  return { pid: gateway.pid, port, loadMs: performance.now() - startedAtMs, stop: () => gateway.stop() };
}
