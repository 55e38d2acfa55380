import { join } from "node:path";
import { type ApplicationContext, createContext, logFor } from "./application-context.ts";
import { reportError } from "./report-error.ts";
import { sandboxSteps } from "./sandbox/steps.ts";
import { dataFolderStep, diskStep, natsStep, portStep, postgresStep } from "./server-steps.ts";
import { gatewayStep, migrationStep, servicesStep } from "./service-steps.ts";
import { readSettings, type Settings } from "./settings.ts";
import { type Step, supervise } from "./supervisor.ts";
import { together } from "./together.ts";

/** Everything that `npm start` starts, in this order; it stops in the reverse one. */
export function applicationSteps(context: ApplicationContext): Step[] {
  return [
    diskStep(context),
    dataFolderStep(context),
    portStep(context),
    together("servers", [natsStep(context), postgresStep(context)]),
    migrationStep(context),
    // Each waits by itself for what it needs from the others; they stop in the reverse order of this list.
    together("processes", [
      servicesStep(context, {
        name: "services",
        services: ["registry", "settlement", "providers", "robotics", "audit", "relay"],
        usesDatabase: true,
      }),
      // In a process of its own: it calls addresses that owners name, and as many of these may run as there is to send.
      servicesStep(context, { name: "webhook-signer", services: ["webhook-signer"], usesDatabase: true }),
      // An outside party in a process of its own: the services reach it over HTTP only.
      servicesStep(context, { name: "sandbox-provider", services: ["sandbox-provider"], usesDatabase: true }),
      servicesStep(context, { name: "stations", services: ["stations"], usesDatabase: false }),
      gatewayStep(context),
    ]),
    ...sandboxSteps(context),
  ];
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Reads the settings, runs the steps until a stop signal, and returns the exit code. Never throws. */
export async function runApplication(environment: NodeJS.ProcessEnv): Promise<number> {
  const checkout = join(import.meta.dirname, "..");
  let settings: Settings;
  try {
    settings = readSettings(environment);
  } catch (error) {
    reportError(error, undefined);
    return 1;
  }
  const context = createContext({ settings, checkout, environment, say });
  const log = logFor(context, "start");
  return await supervise({ steps: applicationSteps(context), say, report: (error) => reportError(error, log) });
}
