/** What the registry deletes: sessions, counters of log-ins, and where people are known, each after its retention. */
import { BOUNDS } from "../bus/bounds.ts";
import type { Database } from "../db/pool.ts";
import type { Retention } from "../runtime/retention.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import * as sql from "./sql/sessions.ts";

/** Several processes may run it at once. Entries of the audit log are kept for ever. */
export function registryRetention(
  database: Database,
): Retention<"sessions" | "loginAttempts" | "knownAddresses" | "knownBrowsers"> {
  const { endedSessionRetentionDays, knownAddressDays, retention } = REGISTRY_LIMITS;
  return {
    what: "old sessions",
    ...retention,
    removals: {
      sessions: (rows) => sql.deleteOldSessions(database, { olderThanDays: endedSessionRetentionDays, rows }),
      loginAttempts: (rows) => sql.deleteOldLoginAttempts(database, rows),
      knownAddresses: (rows) => sql.deleteOldKnownAddresses(database, { olderThanDays: knownAddressDays, rows }),
      knownBrowsers: (rows) => sql.deleteOldKnownBrowsers(database, { olderThanDays: BOUNDS.knownBrowserDays, rows }),
    },
  };
}
