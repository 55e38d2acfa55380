/** `npm start`: the whole system on this machine, until Ctrl-C; `npm start -- --help` lists its settings. */
import { join } from "node:path";
import { buildPages } from "../gateway/web/build.ts";
import { helpText, refuseArguments } from "../services/runtime/settings-help.ts";
import { type ApplicationContext, createContext, logFor } from "./application-context.ts";
import { sandboxSteps } from "./sandbox/steps.ts";
import { dataFolderStep, diskStep, natsStep, portStep, postgresStep } from "./server-steps.ts";
import { gatewayStep, migrationStep, servicesStep } from "./service-steps.ts";
import { DATABASE_RESTORED, readSettings, type Settings, START_DESCRIPTION } from "./settings.ts";
import { reportError, type Step, supervise, together } from "./supervisor.ts";

/** The steps in the order of their start; they stop in the reverse order. */
function applicationSteps(context: ApplicationContext): Step[] {
  return [
    diskStep(context),
    dataFolderStep(context),
    portStep(context),
    together("servers", [natsStep(context), postgresStep(context)]),
    migrationStep(context),
    // Each process waits for the others that it needs. They stop in the reverse order of this list.
    { name: "pages", start: async () => void (await buildPages()) },
    together("processes", [
      servicesStep(context, "services", [
        "registry",
        "settlement",
        "providers",
        "robotics",
        "reconciliation",
        "audit",
        "relay",
      ]),
      // In a separate process: it calls addresses that owners name, and an operator may run any number of such processes.
      servicesStep(context, "webhook-signer", ["webhook-signer"]),
      // An outside party in a separate process: the services reach it over HTTP only.
      servicesStep(context, "sandbox-provider", ["sandbox-provider"]),
      servicesStep(context, "stations", ["stations"]),
      gatewayStep(context),
    ]),
    ...sandboxSteps(context),
  ];
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** Reads the settings, runs the steps until a stop signal, and returns the exit code. Never throws. */
async function runApplication(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  if (args.includes("--help")) {
    process.stdout.write(helpText(START_DESCRIPTION));
    return 0;
  }
  let settings: Settings;
  try {
    refuseArguments(args.filter((each) => each !== DATABASE_RESTORED));
    settings = readSettings(environment);
  } catch (error) {
    reportError(error, undefined);
    return 1;
  }
  const context = createContext({
    settings,
    checkout: join(import.meta.dirname, ".."),
    environment,
    print,
    isDatabaseRestored: args.includes(DATABASE_RESTORED),
  });
  return await supervise({ steps: applicationSteps(context), print, log: logFor(context, "start") });
}

// A closed pipe or a full disk behind the output does not stop the system.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

// Exits explicitly: a socket left open somewhere must not keep a stopped system running.
process.exit(await runApplication(process.argv.slice(2), process.env));
