/** The registry deletes sessions, counters of log-ins, and the known addresses and browsers of people after their retention. */
import { BOUNDS } from "../bus/bounds.ts";
import type { Database } from "../db/pool.ts";
import type { Retention } from "../runtime/retention.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import * as sql from "./sql/sessions.ts";

/** Several processes may run this job at once. It never deletes entries of the audit log. */
export function registryRetention(
  database: Database,
): Retention<"sessions" | "loginAttempts" | "knownAddresses" | "knownBrowsers"> {
  const { endedSessionRetentionDays, knownAddressDays, retention } = REGISTRY_LIMITS;
  return {
    what: "old sessions, log-in counters, known addresses and known browsers",
    ...retention,
    removals: {
      sessions: (rows) => sql.deleteOldSessions(database, { olderThanDays: endedSessionRetentionDays, rows }),
      loginAttempts: (rows) => sql.deleteOldLoginAttempts(database, rows),
      knownAddresses: (rows) => sql.deleteOldKnownAddresses(database, { olderThanDays: knownAddressDays, rows }),
      knownBrowsers: (rows) => sql.deleteOldKnownBrowsers(database, { olderThanDays: BOUNDS.knownBrowserDays, rows }),
    },
  };
}
