/** Starts the actor host as a service. */
import { randomUUID } from "node:crypto";
import { connectBus } from "../bus/connection.ts";
import { followSwitches } from "../bus/switches-replica.ts";
import { addGauge } from "../runtime/metrics.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { StationHost } from "./host.ts";
import { readStationsSettings } from "./settings.ts";

/** Resolves when the host takes part in the ownership of partitions; alone, it owns all of them by then. */
export async function startStationsService(deps: ServiceDeps): Promise<Service> {
  const { bus, log, environment } = deps;
  const settings = readStationsSettings(environment);
  const { natsUrl: url } = deps.settings;
  const [leaseBus, scanBus] = await Promise.all([
    connectBus({ url, name: "stations leases", log }),
    connectBus({ url, name: "stations scan", log }),
  ]);
  const switches = await followSwitches(bus, log);
  const host = new StationHost({ bus, leaseBus, scanBus, log, hostId: randomUUID(), switches, settings });
  await host.start();
  addGauge(deps.metrics, "stations_partitions_owned", "Partitions that this host serves.", () => host.owned().size);
  addGauge(deps.metrics, "stations_resident_states", "Station states kept decoded.", () => host.residentStates());
  addGauge(deps.metrics, "stations_commands_waiting", "Commands waiting in mailboxes.", () => host.waitingCommands());
  return {
    async stop() {
      await host.stop();
      switches.stop();
      await Promise.all([leaseBus.close(), scanBus.close()]);
    },
  };
}
