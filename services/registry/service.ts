/** The registry: people, places and devices; PostgreSQL is its truth, the outbox tells the bus. */
import { BOUNDS } from "../bus/bounds.ts";
import { registryHealth } from "../bus/messages/health.ts";
import { serve } from "../bus/operation.ts";
import { databaseHealth } from "../db/health.ts";
import { closeDatabase, type Database, openDatabase } from "../db/pool.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { parseSettings, requireDatabaseUrl } from "../runtime/settings.ts";
import type { RegistryLog } from "./deps.ts";
import { addRegistryFigures } from "./figures.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import { createLoginThrottle } from "./login-throttle.ts";
import { serveRegistry } from "./operations.ts";
import { createPasswords } from "./secrets/password.ts";
import { registrySettingsSchema } from "./settings.ts";
import { deleteOldKnownAddresses } from "./sql/known-addresses.ts";
import { deleteOldKnownBrowsers } from "./sql/known-browsers.ts";
import { deleteOldLoginAttempts } from "./sql/login-attempts.ts";
import { deleteOldSessions } from "./sql/sessions.ts";

/** Starts the registry. Several processes may run it: they share the requests, and PostgreSQL keeps them in step. */
export async function startRegistryService(deps: ServiceDeps): Promise<Service> {
  const settings = parseSettings(registrySettingsSchema, deps.environment);
  const sql = openDatabase({
    url: requireDatabaseUrl(deps.settings),
    name: "device-payments registry",
    maxConnections: deps.connections,
  });
  const { bus, log } = deps;
  const serving = serveRegistry({
    nc: bus.nc,
    jsm: bus.jsm,
    sql,
    log,
    settings,
    passwords: await createPasswords(),
    loginThrottle: createLoginThrottle(sql),
    figures: addRegistryFigures(deps.metrics),
  });
  const health = serve({ nc: bus.nc, log, queue: "registry" }, registryHealth, databaseHealth(bus.nc, sql));
  const housekeeping = setInterval(() => void keepHouse(sql, log), REGISTRY_LIMITS.housekeepingIntervalMs);
  housekeeping.unref();
  return {
    stop: async () => {
      clearInterval(housekeeping);
      await Promise.all([...serving, health].map((served) => served.drain()));
      await closeDatabase(sql);
    },
  };
}

/** Removes what has outlived its retention. Never rejects: what fails now is done an hour later. */
export async function keepHouse(sql: Database, log: RegistryLog): Promise<void> {
  try {
    const sessions = await deleteOldSessions(sql, REGISTRY_LIMITS.endedSessionRetentionDays);
    await deleteOldLoginAttempts(sql);
    await deleteOldKnownAddresses(sql, REGISTRY_LIMITS.knownAddressDays);
    await deleteOldKnownBrowsers(sql, BOUNDS.knownBrowserDays);
    log.info({ sessions }, "removed what has outlived its retention");
  } catch (error) {
    log.error({ err: error }, "housekeeping failed");
  }
}
