/** Runs one or several services in this process: `node services/main.ts registry settlement audit relay`. */
import { exitWith } from "./runtime/lifecycle.ts";
import { type ReachDatabase, runServices, type StartService } from "./runtime/run-services.ts";
import { requireDatabaseUrl } from "./runtime/settings.ts";

/** Each service is loaded only where it runs, so that an actor host needs no database driver. */
const SERVICES: Readonly<Record<string, StartService>> = {
  registry: async (deps) => (await import("./registry/service.ts")).startRegistryService(deps),
  settlement: async (deps) => (await import("./settlement/service.ts")).startSettlementService(deps),
  audit: async (deps) => (await import("./audit/service.ts")).startAuditService(deps),
  providers: async (deps) => (await import("./providers/service.ts")).startProvidersService(deps),
  "sandbox-provider": async (deps) => (await import("./sandbox-provider/service.ts")).startSandboxProviderService(deps),
  robotics: async (deps) => (await import("./robotics/service.ts")).startRoboticsService(deps),
  "webhook-signer": async (deps) => (await import("./webhook-signer/service.ts")).startWebhookSignerService(deps),
  relay: async (deps) => (await import("./relay/service.ts")).startRelayService(deps),
  stations: async (deps) => (await import("./stations/service.ts")).startStationsService(deps),
};

/** PostgreSQL has to answer before a service starts; only the actor hosts do without it. */
const reachDatabase: ReachDatabase = async (names, settings, signal) => {
  if (names.every((name) => name === "stations")) return undefined;
  const url = requireDatabaseUrl(settings);
  const [database, installation] = await Promise.all([
    import("./db/reach-database.ts"),
    import("./db/installation.ts"),
  ]);
  await database.reachDatabase({ url, signal });
  return await installation.readInstallation(url);
};

runServices(process.argv.slice(2), SERVICES, { environment: process.env, reachDatabase }).catch(exitWith);
