/**
 * The registry deletes sessions, counters of log-ins, the known addresses and browsers of people, and the idempotency keys of
 * all creations after their retention.
 */
import { BOUNDS } from "../bus/bounds.ts";
import { deleteOldCreations } from "../db/creations.ts";
import type { Database } from "../db/pool.ts";
import type { Retention } from "../runtime/retention.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import * as sql from "./sql/sessions.ts";

/** Several processes may run this job at once. It never deletes entries of the audit log. */
export function registryRetention(
  database: Database,
): Retention<"sessions" | "loginAttempts" | "knownAddresses" | "knownBrowsers" | "creations"> {
  const { endedSessionRetentionDays, knownAddressDays, creationRetentionDays, retention } = REGISTRY_LIMITS;
  return {
    what: "old sessions, log-in counters, known addresses, known browsers and idempotency keys",
    ...retention,
    removals: {
      sessions: (rows) => sql.deleteOldSessions(database, { olderThanDays: endedSessionRetentionDays, rows }),
      loginAttempts: (rows) => sql.deleteOldLoginAttempts(database, rows),
      knownAddresses: (rows) => sql.deleteOldKnownAddresses(database, { olderThanDays: knownAddressDays, rows }),
      knownBrowsers: (rows) => sql.deleteOldKnownBrowsers(database, { olderThanDays: BOUNDS.knownBrowserDays, rows }),
      creations: (rows) => deleteOldCreations(database, { olderThanDays: creationRetentionDays, rows }),
    },
  };
}
