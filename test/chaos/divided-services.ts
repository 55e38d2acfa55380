/**
 * Divides the services of a running system into three processes: the providers service, the sandbox provider, and all others.
 * So each can be killed while the others run.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestSystem } from "../support/system.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { startTestProcess, type TestProcess } from "../support/test-process.ts";

const SCRIPT = "services/main.ts";
const DIVISION = {
  services: ["registry", "settlement", "audit", "relay"],
  providers: ["providers"],
  sandboxProvider: ["sandbox-provider"],
} as const;
type Part = keyof typeof DIVISION;

export interface DividedServices {
  readonly processes: Readonly<Record<Part, TestProcess>>;
  log(part: Part): string;
  stop(): Promise<void>;
}

/** Stops the system's process of services, which has seeded the sandbox, and starts the three processes. */
export async function divideServices(
  system: TestSystem,
  settings: Readonly<Record<string, string>>,
): Promise<DividedServices> {
  await system.processes.services.stop();
  const folder = temporaryFolder("divided");
  const logFile = (part: Part): string => join(folder.path, `${part}.log`);
  const environment = {
    ...process.env,
    LOG_LEVEL: "info",
    NATS_URL: system.nats.url,
    DATABASE_URL: system.database.url,
    ...settings,
  };
  const start = (part: Part) =>
    startTestProcess({ name: part, script: SCRIPT, args: DIVISION[part], environment, logFile: logFile(part) });
  const [services, providers, sandboxProvider] = await Promise.all([
    start("services"),
    start("providers"),
    start("sandboxProvider"),
  ]);
  return {
    processes: { services, providers, sandboxProvider },
    log: (part) => readFileSync(logFile(part), "utf8"),
    async stop() {
      await Promise.all([services.stop(), providers.stop(), sandboxProvider.stop()]);
      folder.remove();
    },
  };
}
