/** The services of this product: what each does, its settings, and its start. */
import type { z } from "zod";
import type { StartService } from "./runtime/run-services.ts";
import { diskSettingsSchema, parseSettings, requireDatabaseUrl, sharedSettingsSchema } from "./runtime/settings.ts";
import type { ProcessDescription } from "./runtime/settings-help.ts";

interface ServiceEntry {
  /** One sentence. */
  readonly does: string;
  /** Undefined when the service has only the settings of all services. */
  readonly settings?: () => Promise<z.ZodType>;
  readonly start: StartService;
}

/** A process imports only the services that it runs, so that an actor host needs no database driver. */
export const SERVICES: Readonly<Record<string, ServiceEntry>> = {
  registry: {
    does: "Organizations, people, stations, devices, sessions and kill switches.",
    settings: async () => (await import("./registry/settings.ts")).registrySettingsSchema,
    start: async (deps) => (await import("./registry/service.ts")).startRegistryService(deps),
  },
  settlement: {
    does: "Orders, and the one function that records transactions.",
    start: async (deps) => (await import("./settlement/service.ts")).startSettlementService(deps),
  },
  audit: {
    does: "Copies what stations commit to PostgreSQL, for timelines and the audit log.",
    settings: async () => (await import("./audit/settings.ts")).auditSettingsSchema,
    start: async (deps) => (await import("./audit/service.ts")).startAuditService(deps),
  },
  providers: {
    does: "Payment providers: their accounts, QR payments, callbacks, and issues.",
    settings: async () => (await import("./providers/settings.ts")).providersSettingsSchema,
    start: async (deps) => (await import("./providers/service.ts")).startProvidersService(deps),
  },
  "sandbox-provider": {
    does: "A payment provider for sandboxes and tests; an installation with only real providers does not need it.",
    settings: async () => (await import("./sandbox-provider/settings.ts")).sandboxProviderSettingsSchema,
    start: async (deps) => (await import("./sandbox-provider/service.ts")).startSandboxProviderService(deps),
  },
  robotics: {
    does: "Serving tasks of robots.",
    settings: async () => (await import("./robotics/settings.ts")).roboticsSettingsSchema,
    start: async (deps) => (await import("./robotics/service.ts")).startRoboticsService(deps),
  },
  reconciliation: {
    does: "The statements of providers and banks.",
    settings: async () => (await import("./reconciliation/settings.ts")).reconciliationSettingsSchema,
    start: async (deps) => (await import("./reconciliation/service.ts")).startReconciliationService(deps),
  },
  "webhook-signer": {
    does: "Signs and sends webhooks.",
    settings: async () => (await import("./webhook-signer/settings.ts")).signerSettingsSchema,
    start: async (deps) => (await import("./webhook-signer/service.ts")).startWebhookSignerService(deps),
  },
  relay: {
    does: "Delivers changes from PostgreSQL to the bus: one relay delivers, the others stand by.",
    start: async (deps) => (await import("./relay/service.ts")).startRelayService(deps),
  },
  stations: {
    does: "The actor hosts: they own the stations and carry out their commands.",
    settings: async () => (await import("./stations/settings.ts")).stationsSettingsSchema,
    start: async (deps) => (await import("./stations/service.ts")).startStationsService(deps),
  },
};

/** The description of the process that runs these services. */
export async function describeServices(names: readonly string[]): Promise<ProcessDescription> {
  const entries = names.flatMap((name) => SERVICES[name] ?? []);
  const schemas = await Promise.all(entries.flatMap(({ settings }) => settings?.() ?? []));
  return {
    name: names.join("+"),
    command: `node services/main.ts ${names.join(" ")}`,
    does: entries.map(({ does }) => does).join(" "),
    usesDatabase: needsDatabase(names),
    schemas: [sharedSettingsSchema, diskSettingsSchema, ...schemas],
  };
}

/** Throws UserError `invalid_setting` for a setting of these services that is missing or not usable. */
export async function checkSettings(names: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const { schemas, usesDatabase } = await describeServices(names);
  for (const schema of schemas) parseSettings(schema, environment);
  if (usesDatabase) requireDatabaseUrl(parseSettings(sharedSettingsSchema, environment));
}

/** All services except the actor hosts need PostgreSQL. */
export function needsDatabase(names: readonly string[]): boolean {
  return names.some((name) => name !== "stations");
}

/** The text that `node services/main.ts --help` prints. */
export function servicesHelp(): string {
  const rows = Object.entries(SERVICES).map(([name, { does }]) => `  ${name.padEnd(17)} ${does}`);
  return [
    "node services/main.ts SERVICE ...",
    "",
    "Runs one or several services in this process. Several processes of one service share its work.",
    "",
    ...rows,
    "",
    "node services/main.ts SERVICE --help",
    "      lists the settings of a service.",
    "",
  ].join("\n");
}
