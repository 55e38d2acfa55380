import { join } from "node:path";
import { UserError } from "../services/runtime/user-error.ts";
import { type ApplicationContext, logFile } from "./application-context.ts";
import { openDataFolder } from "./data-folder.ts";
import { checkDatabase, ensureDatabase } from "./embedded/ensure-database.ts";
import { findNatsServer } from "./embedded/find-nats-server.ts";
import { startNats, waitForNats } from "./embedded/nats.ts";
import { startPostgres } from "./embedded/postgres.ts";
import { deployLimits } from "./limits.ts";
import { checkPort } from "./port-check.ts";
import { openSecrets } from "./secrets.ts";
import { failWhenItEnds, stopChild } from "./service-process.ts";
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

/** Sees that the HTTP port is free before anything is started for it. */
export function portStep(context: ApplicationContext): Step {
  return {
    name: "port",
    start: async () => {
      await checkPort(context.settings.host, context.settings.port);
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
        await checkNats(natsUrl);
        context.addresses.set("nats", natsUrl);
        return undefined;
      }
      const { environment, checkout, say } = context;
      const binary = await findNatsServer({ environment, checkout, say });
      const log = logFile(context, "nats-server");
      const token = openSecrets(dataDir).value("nats_token");
      const server = await startNats({ binary, folder: join(dataDir, "nats"), logFile: log, token });
      void failWhenItEnds({ name: "nats-server", child: server.child, logFile: log, control });
      context.addresses.set("nats", server.url);
      say(`nats-server ${server.version} with JetStream is up.`);
      return stopChild(server.child);
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
        await checkDatabase(databaseUrl);
        context.addresses.set("database", databaseUrl);
        return undefined;
      }
      const log = logFile(context, "postgres");
      const password = openSecrets(dataDir).value("postgres_password");
      const server = await startPostgres({ folder: join(dataDir, "postgres"), logFile: log, password });
      void failWhenItEnds({ name: "PostgreSQL", child: server.child, logFile: log, control });
      await ensureDatabase(server.url("postgres"), DATABASE_NAME);
      context.addresses.set("database", server.url(DATABASE_NAME));
      context.say("PostgreSQL is up.");
      return stopChild(server.child);
    },
  };
}

/** Throws UserError `nats_unreachable` unless one of the servers greets. The sentence leaves credentials out. */
async function checkNats(natsUrl: string): Promise<void> {
  const servers = natsUrl.split(",").map((server) => {
    const text = server.trim();
    return URL.parse(text.includes("://") ? text : `nats://${text}`);
  });
  const names = servers.map((server) => server?.host ?? "an address that cannot be read").join(", ");
  const greetings = servers.map(async (server) => {
    const port = Number.parseInt(server?.port || String(NATS_PORT), 10);
    return server !== null && (await waitForNats(server.hostname, port, { timeoutMs: deployLimits.externalServerMs }));
  });
  if ((await Promise.all(greetings)).includes(true)) return;
  throw new UserError(`The NATS that NATS_URL names (${names}) does not answer.`, { code: "nats_unreachable" });
}
