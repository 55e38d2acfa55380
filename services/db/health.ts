/** How a service with a database is: as well as its database, and what else it looks at. */
import type { ServiceFault, ServiceHealth } from "../bus/messages/health.ts";
import { sample } from "../runtime/sample.ts";
import { DATABASE_LIMITS } from "./limits.ts";
import type { Database } from "./pool.ts";

/**
 * Asks the database whether it answers, and then `findFault` about the rest. Each answer comes within twice `probeMs`,
 * and one statement at most waits for a database that does not.
 */
export function databaseHealth(
  database: Database,
  findFault: () => Promise<ServiceFault | null> = async () => null,
): () => Promise<ServiceHealth> {
  const probe = sample(async () => await database`select 1`, DATABASE_LIMITS.probeMs);
  return async () => {
    if ((await probe()) === undefined) return { databaseReady: false, fault: "database_unreachable" };
    return { databaseReady: true, fault: await findFault() };
  };
}
