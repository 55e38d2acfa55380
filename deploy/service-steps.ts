import { join } from "node:path";
import { migrate } from "../services/db/migrate.ts";
import { type ApplicationContext, logFile } from "./application-context.ts";
import { startServiceProcess } from "./service-process.ts";
import type { Step } from "./supervisor.ts";

/** Brings the database to the schema of this version. */
export function migrationStep(context: ApplicationContext): Step {
  return {
    name: "migrations",
    start: async () => {
      await migrate({ databaseUrl: context.addresses.get("database"), log: () => undefined });
      return undefined;
    },
  };
}

/** A process of services/main.ts. */
export interface ServicesProcess {
  name: string;
  services: string[];
  /** Only a process that works with the database learns where it is. */
  usesDatabase: boolean;
}

/** One process that runs the named services. */
export function servicesStep(context: ApplicationContext, process: ServicesProcess): Step {
  return {
    name: process.name,
    start: async (control) => {
      const running = await startServiceProcess({
        name: process.name,
        script: join(context.checkout, "services", "main.ts"),
        args: process.services,
        environment: {
          ...baseEnvironment(context, process.name),
          ...(process.usesDatabase ? { DATABASE_URL: context.addresses.get("database") } : {}),
        },
        logFile: logFile(context, process.name),
        control,
      });
      context.say(`${process.name}: up.`);
      return running.stop;
    },
  };
}

/** The gateway process. It never learns where the database is. */
export function gatewayStep(context: ApplicationContext): Step {
  return {
    name: "gateway",
    start: async (control) => {
      const { host, port } = context.settings;
      const running = await startServiceProcess({
        name: "gateway",
        script: join(context.checkout, "gateway", "main.ts"),
        args: [],
        environment: { ...baseEnvironment(context, "gateway"), HOST: host, PORT: String(port) },
        logFile: logFile(context, "gateway"),
        control,
      });
      const boundPort = typeof running.ready.port === "number" ? running.ready.port : port;
      context.addresses.set("gateway", `http://${reachableHost(host)}:${boundPort}`);
      context.say("gateway: up.");
      return running.stop;
    },
  };
}

/** Each process needs a metrics port of its own: METRICS_PORT and the two after it. */
const METRICS_PORT_OFFSETS: Readonly<Record<string, number>> = { services: 0, stations: 1, gateway: 2 };

function baseEnvironment(context: ApplicationContext, name: string): NodeJS.ProcessEnv {
  const { DATABASE_URL: _database, NATS_URL: _nats, METRICS_PORT: _metrics, ...rest } = context.environment;
  const { logLevel, metricsPort } = context.settings;
  return {
    ...rest,
    ...metricsEnvironment(metricsPort, name),
    NATS_URL: context.addresses.get("nats"),
    LOG_LEVEL: logLevel,
  };
}

function metricsEnvironment(metricsPort: number | undefined, name: string): NodeJS.ProcessEnv {
  if (metricsPort === undefined) return {};
  // Any free port needs no distance from the others.
  const port = metricsPort === 0 ? 0 : metricsPort + (METRICS_PORT_OFFSETS[name] ?? 0);
  return { METRICS_PORT: String(port) };
}

/** An address to type into a browser for an address to listen on. */
function reachableHost(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}
