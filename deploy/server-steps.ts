import { join } from "node:path";
import { reachDatabase } from "../services/db/reach-database.ts";
import { UserError } from "../services/runtime/user-error.ts";
import { type ApplicationContext, logFor } from "./application-context.ts";
import { openDataFolder } from "./data-folder.ts";
import { ensureDatabase } from "./embedded/ensure-database.ts";
import { findNatsServer } from "./embedded/find-nats-server.ts";
import { freePort } from "./embedded/free-port.ts";
import { startNats, waitForNats } from "./embedded/nats.ts";
import { startPostgres } from "./embedded/postgres.ts";
import { keepRunning } from "./keep-running.ts";
import { keptPort } from "./kept-port.ts";
import { deployLimits } from "./limits.ts";
import { checkPort } from "./port-check.ts";
import { openSecrets } from "./secrets.ts";
import { metricsPorts } from "./settings.ts";
import type { Step } from "./supervisor.ts";

const DATABASE_NAME = "device_payments";
const NATS_PORT = 4222;

/** Takes the data folder for this process alone. */
export function dataFolderStep(context: ApplicationContext): Step {
  return {
    name: "data folder",
    start: async () => {
      const release = await openDataFolder(context.settings.dataDir, context.say);
      return async () => release();
    },
  };
}

/**
 * Sees that the HTTP port and the metrics ports are free before anything is started for them, and chooses those that are
 * left to us: here and once, so that what is started again comes back where its clients are. The sandbox provider's is
 * kept for the next start as well, because guests have its address in their QR codes.
 */
export function portStep(context: ApplicationContext): Step {
  return {
    name: "port",
    start: async () => {
      const { host, port, metricsHost, dataDir } = context.settings;
      await checkPort(host, port, { port: "PORT", host: "HOST" });
      const { addresses, environment } = context;
      addresses.set("gateway", `http://${reachableHost(host)}:${port === 0 ? await freePort(host) : port}`);
      addresses.set(
        "sandboxProvider",
        environment.SANDBOX_PROVIDER_URL || `http://127.0.0.1:${await keptPort(dataDir, "sandboxProvider")}`,
      );
      for (const metricsPort of metricsPorts(context.settings)) {
        await checkPort(metricsHost, metricsPort, { port: "METRICS_PORT", host: "METRICS_HOST" });
      }
      return undefined;
    },
  };
}

/** The NATS of NATS_URL, or an embedded one. */
export function natsStep(context: ApplicationContext): Step {
  return {
    name: "NATS",
    start: async (control) => {
      const { natsUrl, dataDir } = context.settings;
      if (natsUrl !== undefined) {
        await checkNats(natsUrl, control.stopping);
        context.addresses.set("nats", natsUrl);
        return undefined;
      }
      const { environment, checkout, say } = context;
      const binary = await findNatsServer({ environment, checkout, say, signal: control.stopping });
      const log = logFor(context, "nats-server");
      const token = openSecrets(dataDir).value("nats_token");
      let url = "";
      // Chosen once: a server that is started again comes back where its clients redial.
      let port: number | undefined;
      const launch = async (stopping: AbortSignal) => {
        const folder = join(dataDir, "nats");
        const server = await startNats({ binary, folder, ...log, token, port, stopping });
        ({ url, port } = server);
        return { child: server.child, ended: server.child.exited.then((exit) => ({ exit })) };
      };
      const stop = await keepRunning({ name: "nats-server", logFile: log.logFile, control, say, launch });
      context.addresses.set("nats", url);
      say(`nats-server ${binary.version} with JetStream is up.`);
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
        await reachDatabase({
          url: databaseUrl,
          withinMs: deployLimits.externalServerMs,
          signal: control.stopping,
        });
        context.addresses.set("database", databaseUrl);
        return undefined;
      }
      const log = logFor(context, "postgres");
      const password = openSecrets(dataDir).value("postgres_password");
      let url = "";
      let port: number | undefined;
      const launch = async (stopping: AbortSignal) => {
        const folder = join(dataDir, "postgres");
        const server = await startPostgres({ folder, ...log, password, port, stopping });
        ({ port } = server);
        url = server.url(DATABASE_NAME);
        await ensureDatabase(server.url("postgres"), DATABASE_NAME).catch(async (error: unknown) => {
          await server.child.stop();
          throw error;
        });
        return { child: server.child, ended: server.child.exited.then((exit) => ({ exit })) };
      };
      const { say } = context;
      const stop = await keepRunning({ name: "PostgreSQL", logFile: log.logFile, control, say, launch });
      context.addresses.set("database", url);
      say("PostgreSQL is up.");
      return stop;
    },
  };
}

/** An address to type into a browser for an address to listen on. */
function reachableHost(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}

/** Throws UserError `nats_unreachable` unless one of the servers greets. The sentence leaves credentials out. */
async function checkNats(natsUrl: string, signal: AbortSignal): Promise<void> {
  const servers = natsUrl.split(",").map((server) => {
    const text = server.trim();
    return URL.parse(text.includes("://") ? text : `nats://${text}`);
  });
  const names = servers.map((server) => server?.host ?? "an address that cannot be read").join(", ");
  const wait = {
    timeoutMs: deployLimits.externalServerMs,
    longestPauseMs: deployLimits.externalServerLongestPauseMs,
    signal,
  };
  const greetings = servers.map(async (server) => {
    const port = Number.parseInt(server?.port || String(NATS_PORT), 10);
    return server !== null && (await waitForNats(server.hostname, port, wait));
  });
  if ((await Promise.all(greetings)).includes(true)) return;
  throw new UserError(`The NATS that NATS_URL names (${names}) does not answer.`, { code: "nats_unreachable" });
}
