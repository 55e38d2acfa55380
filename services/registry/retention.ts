/** What the registry deletes: sessions, counters of log-ins, and where people are known, each after its retention. */
import { BOUNDS } from "../bus/bounds.ts";
import type { Database } from "../db/pool.ts";
import type { Retention } from "../runtime/retention.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import { deleteOldKnownAddresses } from "./sql/known-addresses.ts";
import { deleteOldKnownBrowsers } from "./sql/known-browsers.ts";
import { deleteOldLoginAttempts } from "./sql/login-attempts.ts";
import { deleteOldSessions } from "./sql/sessions.ts";

/** Several processes may run it at once. Entries of the audit log are kept for ever. */
export function registryRetention(
  sql: Database,
): Retention<"sessions" | "loginAttempts" | "knownAddresses" | "knownBrowsers"> {
  const { endedSessionRetentionDays, knownAddressDays, retention } = REGISTRY_LIMITS;
  return {
    what: "old sessions",
    ...retention,
    removals: {
      sessions: (rows) => deleteOldSessions(sql, { olderThanDays: endedSessionRetentionDays, rows }),
      loginAttempts: (rows) => deleteOldLoginAttempts(sql, rows),
      knownAddresses: (rows) => deleteOldKnownAddresses(sql, { olderThanDays: knownAddressDays, rows }),
      knownBrowsers: (rows) => deleteOldKnownBrowsers(sql, { olderThanDays: BOUNDS.knownBrowserDays, rows }),
    },
  };
}
