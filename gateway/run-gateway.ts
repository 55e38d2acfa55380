/** One gateway as a process: its steps from the bus to the open port. */
import { addBusMetrics, connectBus } from "../services/bus/connection.ts";
import { watchDisk } from "../services/runtime/disk-watch.ts";
import { runProcess } from "../services/runtime/lifecycle.ts";
import { createLog } from "../services/runtime/log.ts";
import { startMetrics } from "../services/runtime/metrics-port.ts";
import { diskSettingsSchema, parseSettings, sharedSettingsSchema } from "../services/runtime/settings.ts";
import { startGateway } from "./app.ts";
import { readGatewaySettings } from "./settings.ts";

/** Runs until the process is asked to end. Throws UserError `invalid_setting`. */
export async function runGateway(environment: NodeJS.ProcessEnv): Promise<void> {
  const shared = parseSettings(sharedSettingsSchema, environment);
  const settings = readGatewaySettings(environment);
  const diskSettings = parseSettings(diskSettingsSchema, environment);
  const log = createLog({ service: "gateway", level: shared.logLevel });
  await runProcess({ name: "gateway", log }, async (run) => {
    const metrics = await run.step(
      "metrics",
      async () => (shared.metrics === undefined ? undefined : await startMetrics("gateway", shared.metrics)),
      async (started) => await started?.stop(),
    );
    const bus = await run.step(
      "bus",
      () => {
        const { natsUrl: url, natsAccess: access } = shared;
        return connectBus({ url, access, name: "gateway", log, signal: run.stopping, awaitsQuorum: true });
      },
      (started) => started.close(),
    );
    const disk = await run.step(
      "disk",
      () => watchDisk({ ...diskSettings, log, metrics: metrics?.registry }),
      (started) => started.stop(),
    );
    addBusMetrics(metrics?.registry, bus);
    const gateway = await run.step(
      "gateway",
      () => startGateway({ bus, log, settings, disk, metrics: metrics?.registry }),
      (started) => started.stop(),
    );
    metrics?.reportReadiness(() => (run.stopping.aborted ? ["stopping"] : gateway.missing()));
    return { host: settings.host, port: gateway.port, metricsPort: metrics?.port };
  });
}
