/** One process that runs one or several services on one connection to the bus. */
import type { Registry } from "prom-client";
import { reportClock } from "../bus/bus-clock.ts";
import { addBusMetrics } from "../bus/bus-metrics.ts";
import { checkStreams } from "../bus/check-streams.ts";
import { type Bus, connectBus } from "../bus/connection.ts";
import { addLateCount } from "../bus/deadline.ts";
import { setDisk } from "../bus/disk-gate.ts";
import { addRepeatedCount } from "../bus/exchange.ts";
import { type Installation, keepOwnerChecked } from "../bus/installation.ts";
import { StationLogs } from "../bus/station-logs.ts";
import { shareConnections } from "./connection-shares.ts";
import { watchDisk } from "./disk-watch.ts";
import { type Run, runProcess } from "./lifecycle.ts";
import { createLog, type Log } from "./log.ts";
import { startMetrics } from "./metrics-port.ts";
import type { Service, ServiceDeps } from "./service.ts";
import { diskSettingsSchema, parseSettings, type SharedSettings, sharedSettingsSchema } from "./settings.ts";
import { UserError } from "./user-error.ts";

export type StartService = (deps: ServiceDeps) => Promise<Service>;
/**
 * Resolves when the database that the named services need has answered, with the installation that it belongs to;
 * undefined: they need none. Rejects when the signal is aborted.
 */
export type ReachDatabase = (
  names: readonly string[],
  options: {
    readonly settings: SharedSettings;
    readonly signal: AbortSignal;
    readonly metrics: Registry | undefined;
    /** The most connections that this process opens. */
    readonly connections: number;
    readonly log: Log;
  },
) => Promise<ReachedDatabase | undefined>;

export interface ReachedDatabase {
  readonly installation: Installation;
  readonly release: () => Promise<void>;
}

export interface RunOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly reachDatabase: ReachDatabase;
}

/** Starts the named services in order and runs until the process is asked to end. Throws UserError `unknown_service` or `invalid_setting`. */
export async function runServices(
  names: readonly string[],
  starts: Readonly<Record<string, StartService>>,
  { environment, reachDatabase }: RunOptions,
): Promise<void> {
  if (names.length === 0 || names.some((name) => starts[name] === undefined)) {
    throw new UserError(`Name the services to run: ${Object.keys(starts).join(", ")}.`, { code: "unknown_service" });
  }
  const settings = parseSettings(sharedSettingsSchema, environment);
  const name = names.join("+");
  const shares = shareConnections(names, settings.databaseConnections);
  const log = createLog({ service: name, level: settings.logLevel });
  await runProcess({ name, log }, async (run) => {
    // The first step and the last to stop, so that an operator can ask for the readiness of a start and of an end.
    const metrics = await run.step(
      "metrics",
      async () => (settings.metrics === undefined ? undefined : await startMetrics(name, settings.metrics)),
      async (started) => await started?.stop(),
    );
    const bus = await run.step(
      "bus",
      () => {
        const { natsUrl: url, natsAccess: access } = settings;
        return connectBus({ url, access, name, log, signal: run.stopping, awaitsQuorum: true });
      },
      (started) => started.close(),
    );
    const connections = shares.total;
    const database = await run.step(
      "database",
      () => reachDatabase(names, { settings, signal: run.stopping, metrics: metrics?.registry, connections, log }),
      async (reached) => await reached?.release(),
    );
    const layout = await run.step(
      "streams",
      () => checkStreams(bus, { signal: run.stopping, log }),
      async () => undefined,
    );
    if (database !== undefined) {
      const { installation } = database;
      await run.step(
        "installation",
        () => keepOwnerChecked({ bus, installation }, (error) => run.fail(error)),
        async (release) => release(),
      );
    }
    const disk = await run.step(
      "disk",
      () => watchDisk({ ...parseSettings(diskSettingsSchema, environment), log, metrics: metrics?.registry }),
      (started) => started.stop(),
    );
    setDisk(bus.nc, disk);
    // The bucket that the time is asked of may be as new as the bus.
    await bus.clock.measure();
    reportClock({ clock: bus.clock, log, metrics: metrics?.registry });
    addLateCount(metrics?.registry, bus.nc);
    addRepeatedCount(metrics?.registry, bus.nc);
    addBusMetrics(metrics?.registry, bus);
    const logs = new StationLogs(layout.logs);
    for (const service of names) {
      const deps: ServiceDeps = {
        bus,
        logs,
        log: log.child({ service }),
        settings,
        environment,
        metrics: metrics?.registry,
        connections: shares.of.get(service),
      };
      await run.step(
        service,
        async () => await starts[service]?.(deps),
        async (started) => await started?.stop(),
      );
    }
    // Ready means that whoever asks now is answered: by then the server must know of every subscription.
    await bus.nc.flush();
    metrics?.reportReadiness(() => notReady(run, bus));
    return { services: names, metricsPort: metrics?.port };
  });
}

/** Why a process should be sent nothing; what all its copies share, such as PostgreSQL, is no reason. */
function notReady({ stopping }: Pick<Run, "stopping">, bus: Bus): readonly string[] {
  if (stopping.aborted) return ["stopping"];
  return bus.isUp() ? [] : ["bus"];
}
