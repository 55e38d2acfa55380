/** Runs one or several services in this process: `node services/main.ts registry settlement audit relay`. */
import { exitWith } from "./runtime/lifecycle.ts";
import { type ReachDatabase, runServices } from "./runtime/run-services.ts";
import { requireDatabaseUrl } from "./runtime/settings.ts";
import { helpText } from "./runtime/settings-help.ts";
import { checkSettings, describeServices, needsDatabase, SERVICES, servicesHelp } from "./service-list.ts";

/** PostgreSQL has to answer before a service starts, except for the actor hosts, which do not need it. */
const reachDatabase: ReachDatabase = async (names, { settings, bus, signal, metrics, connections, log }) => {
  if (!needsDatabase(names)) return undefined;
  const url = requireDatabaseUrl(settings);
  const [database, installation, pulse, pools, check, clock] = await Promise.all([
    import("./db/reach-database.ts"),
    import("./db/installation.ts"),
    import("./db/pulse.ts"),
    import("./db/pool-metrics.ts"),
    import("./db/connection-check.ts"),
    import("./db/database-clock.ts"),
  ]);
  pools.addPoolMetrics(metrics);
  await database.reachDatabase({ url, signal });
  const found = await installation.readInstallation(url);
  const use = clock.databaseClockCheck({ clock: bus.clock, log, metrics });
  const { release } = await check.checkConnections({ url, names, connections, log, use });
  return { installation: found, checkPulse: (owner) => pulse.checkPulse(owner, url), release };
};

async function printHelp(names: readonly string[]): Promise<void> {
  const known = names.filter((name) => SERVICES[name] !== undefined);
  process.stdout.write(known.length === 0 ? servicesHelp() : helpText(await describeServices(known)));
}

async function main(args: readonly string[]): Promise<void> {
  if (args.includes("--help")) return await printHelp(args);
  const starts = Object.fromEntries(Object.entries(SERVICES).map(([name, { start }]) => [name, start]));
  await runServices(args, starts, { environment: process.env, checkSettings, reachDatabase });
}

main(process.argv.slice(2)).catch(exitWith);
