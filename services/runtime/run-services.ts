/** One process that runs one or several services on one connection to the bus. */
import type { Registry } from "prom-client";
import { reportClock } from "../bus/bus-clock.ts";
import { addBusMetrics, type Bus, connectBus } from "../bus/connection.ts";
import { addLateCount } from "../bus/deadline.ts";
import { setDisk } from "../bus/disk-gate.ts";
import { checkStreams } from "../bus/ensure-streams.ts";
import { addRepeatedCount } from "../bus/exchange.ts";
import { type Installation, keepOwnerChecked, type OwnerOptions } from "../bus/installation.ts";
import { knownOperations } from "../bus/operation.ts";
import { StationLogs } from "../bus/streams.ts";
import { watchDisk } from "./disk-watch.ts";
import { type Run, runProcess } from "./lifecycle.ts";
import { createLog, type Log } from "./log.ts";
import { startMetrics } from "./metrics-port.ts";
import type { Service, ServiceDeps } from "./service.ts";
import { diskSettingsSchema, parseSettings, type SharedSettings, sharedSettingsSchema } from "./settings.ts";
import { UserError } from "./user-error.ts";

export type StartService = (deps: ServiceDeps) => Promise<Service>;
/**
 * Waits until the database of the named services answers. Resolves to its installation, or to undefined when the
 * services need no database. Rejects when the signal is aborted.
 */
export type ReachDatabase = (
  names: readonly string[],
  options: {
    readonly settings: SharedSettings;
    readonly bus: Bus;
    readonly signal: AbortSignal;
    readonly metrics: Registry | undefined;
    /** The most connections that this process opens. */
    readonly connections: number;
    readonly log: Log;
  },
) => Promise<ReachedDatabase | undefined>;

interface ReachedDatabase {
  readonly installation: Installation;
  /** Throws UserError `database_older` when the database is older than the bus. */
  readonly checkPulse: (owner: OwnerOptions) => Promise<void>;
  readonly release: () => Promise<void>;
}

interface RunOptions {
  readonly environment: NodeJS.ProcessEnv;
  /** Throws UserError `invalid_setting` for a setting of the named services that is missing or not usable. */
  readonly checkSettings: (names: readonly string[], environment: NodeJS.ProcessEnv) => Promise<void>;
  readonly reachDatabase: ReachDatabase;
}

/**
 * Starts the named services in order and runs until the process has to end. Throws UserError `unknown_service` or
 * `invalid_setting`.
 */
export async function runServices(
  names: readonly string[],
  starts: Readonly<Record<string, StartService>>,
  { environment, checkSettings, reachDatabase }: RunOptions,
): Promise<void> {
  const unknown = names.find((name) => starts[name] === undefined);
  if (names.length === 0 || unknown !== undefined) {
    const wrong = unknown === undefined ? "" : `There is no service "${unknown}". `;
    throw new UserError(`${wrong}Name the services to run: ${Object.keys(starts).join(", ")}.`, {
      code: "unknown_service",
    });
  }
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    throw new UserError(`The service ${twice} is named twice: name each once.`, { code: "unknown_service" });
  }
  // Before the process waits for a server, so that a person gets all errors about settings without a wait between them.
  await checkSettings(names, environment);
  const settings = parseSettings(sharedSettingsSchema, environment);
  const name = names.join("+");
  const shares = shareConnections(names, settings.databaseConnections);
  const log = createLog({ service: name, level: settings.logLevel });
  await runProcess({ name, log }, async (run) => {
    // It starts first and stops last, so that an operator can check the readiness during the start and the end.
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
      () => reachDatabase(names, { settings, bus, signal: run.stopping, metrics: metrics?.registry, connections, log }),
      async (reached) => await reached?.release(),
    );
    const layout = await run.step(
      "streams",
      () => checkStreams(bus, { signal: run.stopping, log }),
      async () => undefined,
    );
    if (database !== undefined) {
      const owner = { bus, installation: database.installation, signal: run.stopping, log };
      await run.step(
        "installation",
        () => keepOwnerChecked(owner, (error) => run.fail(error)),
        async (release) => release(),
      );
      await database.checkPulse(owner);
    }
    const disk = await run.step(
      "disk",
      () => watchDisk({ ...parseSettings(diskSettingsSchema, environment), log, metrics: metrics?.registry }),
      (started) => started.stop(),
    );
    setDisk(bus.nc, disk);
    // `migrate` may just have created the bucket whose info has the time.
    await bus.clock.measure();
    reportClock({ clock: bus.clock, log, metrics: metrics?.registry });
    addLateCount(metrics?.registry, bus.nc);
    addRepeatedCount(metrics?.registry, bus.nc, knownOperations);
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
        fail: (error) => run.fail(error),
      };
      await run.step(
        service,
        async () => await starts[service]?.(deps),
        async (started) => await started?.stop(),
      );
    }
    // The process is ready when the NATS server has all its subscriptions, so that each request reaches it.
    await bus.nc.flush();
    metrics?.reportReadiness(() => notReady(run, bus));
    return { services: names, metricsPort: metrics?.port };
  });
}

/**
 * Why a load balancer should send no requests to this process. A fault that all processes share, such as of PostgreSQL,
 * is not a reason.
 */
export function notReady({ stopping }: Pick<Run, "stopping">, bus: Pick<Bus, "hasQuorum">): readonly string[] {
  if (stopping.aborted) return ["stopping"];
  return bus.hasQuorum() ? [] : ["bus"];
}

interface Wanted {
  /** The fewest connections with which the service works. */
  readonly least: number;
  /** The most connections that the service can use on a separate machine. */
  readonly most: number;
}

const WANTED: Readonly<Record<string, Wanted>> = {
  registry: { least: 2, most: 10 },
  settlement: { least: 2, most: 8 },
  /** The copiers need separate connections. */
  audit: { least: 3, most: 6 },
  providers: { least: 4, most: 16 },
  robotics: { least: 2, most: 10 },
  reconciliation: { least: 4, most: 12 },
  "webhook-signer": { least: 3, most: 12 },
  "sandbox-provider": { least: 2, most: 6 },
  /** One connection holds the relay's lease. */
  relay: { least: 3, most: 11 },
};

/** The connection whose name shows how many the process may open (`db/connection-check.ts`). */
const SHOWING_CONNECTIONS = 1;

interface ConnectionShares {
  /** All connections of the process. */
  readonly total: number;
  /** By service. A service without a database has no entry. */
  readonly of: ReadonlyMap<string, number>;
}

/**
 * Divides `total` connections between the services. When it is undefined, each service gets as many as it can use.
 * Throws UserError `invalid_setting` when the services need more than `total`.
 */
export function shareConnections(names: readonly string[], total: number | undefined): ConnectionShares {
  const wanted = names.flatMap((name) => {
    const found = WANTED[name];
    return found === undefined ? [] : [{ name, ...found }];
  });
  if (wanted.length === 0) return { total: 0, of: new Map() };
  const sum = (of: (each: Wanted) => number): number =>
    wanted.reduce((count, each) => count + of(each), SHOWING_CONNECTIONS);
  const [least, most] = [sum((each) => each.least), sum((each) => each.most)];
  const available = total ?? most;
  if (available < least) {
    const sentence = `The setting DATABASE_CONNECTIONS is not usable: ${names.join(", ")} in one process need at least ${least}.`;
    throw new UserError(sentence, { code: "invalid_setting" });
  }
  const extra = (available - least) / (most - least);
  const of = new Map(wanted.map((each) => [each.name, each.least + Math.floor((each.most - each.least) * extra)]));
  return { total: available, of };
}
