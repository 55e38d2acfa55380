import { join } from "node:path";
import { type ConnectOptions, connectBus } from "../services/bus/connection.ts";
import type { Installation } from "../services/bus/installation.ts";
import { migrateBus } from "../services/db/migrate-installation.ts";
import { reachDatabase } from "../services/db/reach-database.ts";
import { watchDisk } from "../services/runtime/disk-watch.ts";
import { UserError } from "../services/runtime/user-error.ts";
import { type ApplicationContext, logFor } from "./application-context.ts";
import type { Child } from "./child.ts";
import { openDataFolder, secretOf } from "./data-folder.ts";
import { DiskRoom, existingFolder, isAboutSpace } from "./disk-room.ts";
import { findNatsServer } from "./embedded/find-nats-server.ts";
import { type NatsServer, startNats, untilUnhealthy } from "./embedded/nats.ts";
import { ensureDatabase, startPostgres } from "./embedded/postgres.ts";
import { type Ending, keepRunning, type Running } from "./keep-running.ts";
import { deployLimits } from "./limits.ts";
import { checkPort, freePort, keptPort } from "./ports.ts";
import { metricsPorts } from "./settings.ts";
import type { Step } from "./supervisor.ts";

const DATABASE_NAME = "device_payments";
const MEGABYTE = 1_024 ** 2;

/**
 * Watches the disk of the data folder, and prints a line when space gets short. The later steps wait until there is room
 * for a server to start, so that the operator need not start again after freeing space.
 */
export function diskStep(context: ApplicationContext): Step {
  return {
    name: "disk",
    start: async ({ stopping }) => {
      const { settings, print } = context;
      const { dataDir, diskReserveMb } = settings;
      const watch = await watchDisk({
        folder: existingFolder(dataDir),
        reserveBytes: diskReserveMb * MEGABYTE,
        log: { info: () => undefined, warn: () => undefined },
        onChange: () => print(context.room.sentence()),
      });
      context.room = new DiskRoom(watch, dataDir);
      if (watch.tier() !== "ok") print(context.room.sentence());
      if (!context.room.hasRoom()) print(`${context.room.shortage()} to start; waiting for space.`);
      await context.room.whenRoom(stopping);
      return () => watch.stop();
    },
  };
}

/** Locks the data folder for this process alone. */
export function dataFolderStep(context: ApplicationContext): Step {
  return {
    name: "data folder",
    start: async () => {
      const release = await openDataFolder(context.settings.dataDir, context.print);
      return async () => release();
    },
  };
}

/**
 * Checks that the HTTP port and the metrics ports are free before any process starts, and chooses the ports that the
 * operator has not set. It chooses them once, so that a process that is started again listens where its clients connect.
 * The sandbox provider's port is kept for the next start as well, because guests have its address in their QR codes.
 */
export function portStep(context: ApplicationContext): Step {
  return {
    name: "port",
    start: async () => {
      const { host, port, metricsHost, tls } = context.settings;
      await checkPort(host, port, { port: "PORT", host: "HOST" });
      const { addresses, environment } = context;
      const scheme = tls === undefined ? "http" : "https";
      addresses.set("gateway", `${scheme}://${reachableHost(host)}:${port === 0 ? await freePort(host) : port}`);
      addresses.set(
        "sandboxProvider",
        environment.SANDBOX_PROVIDER_URL || `http://127.0.0.1:${await sandboxProviderPort(context)}`,
      );
      for (const metricsPort of metricsPorts(context.settings)) {
        await checkPort(metricsHost, metricsPort, { port: "METRICS_PORT", host: "METRICS_HOST" });
      }
      return undefined;
    },
  };
}

/** The operator's port, after a check that it is free; else the port that this data folder keeps. */
async function sandboxProviderPort({ environment, settings }: ApplicationContext): Promise<number> {
  const port = Number(environment.SANDBOX_PROVIDER_PORT || 0);
  if (port === 0) return keptPort(settings.dataDir, "sandboxProvider");
  const variables = { port: "SANDBOX_PROVIDER_PORT", host: "SANDBOX_PROVIDER_HOST" };
  await checkPort(environment.SANDBOX_PROVIDER_HOST || "127.0.0.1", port, variables);
  return port;
}

/** The NATS of NATS_URL, or an embedded one. */
export function natsStep(context: ApplicationContext): Step {
  return {
    name: "NATS",
    start: async (control) => {
      const { natsUrl, natsAccess, dataDir } = context.settings;
      if (natsUrl !== undefined) {
        await checkNats({ url: natsUrl, access: natsAccess, signal: control.stopping });
        context.addresses.set("nats", natsUrl);
        return undefined;
      }
      const { environment, checkout, print } = context;
      const binary = await findNatsServer({ environment, checkout, print, signal: control.stopping });
      const log = logFor(context, "nats-server");
      const token = secretOf(dataDir, "nats_token");
      let url = "";
      // Chosen once: a server that is started again listens where its clients reconnect.
      let port: number | undefined;
      const { room } = context;
      const launch = async (stopping: AbortSignal): Promise<Running> => {
        const server = await startNats({ binary, folder: join(dataDir, "nats"), ...log, token, port, stopping });
        ({ url, port } = server);
        if (context.installation !== undefined) void prepareAgain(context, url, context.installation, stopping);
        return { child: server.child, ended: endOfNats(server, room, print) };
      };
      const stop = await keepRunning({ name: "nats-server", logFile: log.logFile, control, print, launch, room });
      context.addresses.set("nats", url);
      print(`nats-server ${binary.version} with JetStream is up.`);
      return stop;
    },
  };
}

/** The PostgreSQL of DATABASE_URL, or an embedded one. */
export function postgresStep(context: ApplicationContext): Step {
  return {
    name: "PostgreSQL",
    start: async (control) => {
      const { databaseUrl, dataDir } = context.settings;
      if (databaseUrl !== undefined) {
        const withinMs = deployLimits.externalServerMs;
        await reachDatabase({ url: databaseUrl, withinMs, signal: control.stopping });
        context.addresses.set("database", databaseUrl);
        return undefined;
      }
      const log = logFor(context, "postgres");
      const password = secretOf(dataDir, "postgres_password");
      let url = "";
      let port: number | undefined;
      const launch = async (stopping: AbortSignal) => {
        const server = await startPostgres({ folder: join(dataDir, "postgres"), ...log, password, port, stopping });
        ({ port } = server);
        url = server.url(DATABASE_NAME);
        await ensureDatabase(server.url("postgres"), DATABASE_NAME).catch(async (error: unknown) => {
          await server.child.stop();
          throw error;
        });
        return { child: server.child, ended: endOfPostgres(server.child) };
      };
      const { print, room } = context;
      const stop = await keepRunning({ name: "PostgreSQL", logFile: log.logFile, control, print, launch, room });
      context.addresses.set("database", url);
      print("PostgreSQL is up.");
      return stop;
    },
  };
}

/** Creates missing streams: a restarted server may have lost its data, and the processes would wait for `migrate`. */
async function prepareAgain(
  { print, addresses }: ApplicationContext,
  natsUrl: string,
  installation: Installation,
  signal: AbortSignal,
): Promise<void> {
  try {
    const databaseUrl = addresses.get("database");
    await migrateBus({ natsUrl, installation, databaseUrl, layout: {}, log: () => undefined, signal });
  } catch (error) {
    if (!signal.aborted) print(error instanceof UserError ? error.message : "The streams could not be checked.");
  }
}

/**
 * Resolves at the end of a nats-server. A server that can no longer store messages is ended, but only when there is room to
 * start it again: until then it still serves the requests that store nothing.
 */
async function endOfNats(server: NatsServer, room: DiskRoom, print: (line: string) => void): Promise<Ending> {
  const { child } = server;
  const over = new AbortController();
  void child.exited.then(() => over.abort());
  const reason = await untilUnhealthy(server.healthUrl, over.signal);
  if (reason === undefined) return { exit: await child.exited };
  if (!room.hasRoom()) print(`nats-server cannot store messages now. ${room.shortage()} to start it again.`);
  await room.whenRoom(over.signal);
  if (!over.signal.aborted) await child.stop();
  const sentence = `It could not store messages any more: ${reason.replace(/\.$/, "")}.`;
  return {
    exit: await child.exited,
    reason: new UserError(sentence, { code: "nats_cannot_store" }),
    wasForSpace: isAboutSpace(reason),
  };
}

async function endOfPostgres(child: Child): Promise<Ending> {
  const exit = await child.exited;
  await child.output.logged;
  return { exit, wasForSpace: isAboutSpace(child.output.tail()) };
}

/** The address for a browser when a server listens on `host`. */
function reachableHost(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}

/** Throws UserError unless NATS_URL leads to a bus that this program can use; the sentence leaves credentials out. */
async function checkNats(where: Pick<ConnectOptions, "url" | "access" | "signal">): Promise<void> {
  const log = { info: () => undefined, warn: () => undefined };
  const bus = await connectBus({ ...where, name: "start", log, withinMs: deployLimits.externalServerMs });
  await bus.close();
}
