/** The stations service: one station host. */
import { randomUUID } from "node:crypto";
import { connectBus } from "../bus/connection.ts";
import { stationsHealth } from "../bus/messages/health.ts";
import { serve } from "../bus/operation.ts";
import { RefusedError } from "../bus/refusals.ts";
import { followSwitches } from "../bus/switches-replica.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { StationHost } from "./host.ts";
import { addHostGauges, addHostMetrics } from "./metrics.ts";
import { readStationsSettings } from "./settings.ts";

/** Resolves when the host takes part in the ownership of partitions; the only host then owns all of them. */
export async function startStationsService(deps: ServiceDeps): Promise<Service> {
  const { bus, log, logs, environment } = deps;
  const settings = readStationsSettings(environment);
  const { natsUrl: url, natsAccess: access } = deps.settings;
  const [leaseBus, scanBus] = await Promise.all([
    connectBus({ url, access, name: "stations leases", log, awaitsQuorum: true }),
    connectBus({ url, access, name: "stations scan", log, awaitsQuorum: true }),
  ]);
  const switches = await followSwitches(bus, log);
  const metrics = addHostMetrics(deps.metrics);
  const host = new StationHost({
    bus,
    leaseBus,
    scanBus,
    log,
    logs,
    hostId: randomUUID(),
    switches,
    settings,
    metrics,
  });
  await host.start();
  addHostGauges(deps.metrics, host);
  const health = serve({ nc: bus.nc, log, queue: "stations" }, stationsHealth, async () => {
    const partitionsOwned = host.partitionsOwned();
    if (partitionsOwned === undefined) throw new RefusedError({ code: "unavailable" });
    return { partitionsOwned, isClockWrong: bus.clock.isWrong() };
  });
  return {
    async stop() {
      await health.drain();
      await host.stop();
      switches.stop();
      await Promise.all([leaseBus.close(), scanBus.close()]);
    },
  };
}
