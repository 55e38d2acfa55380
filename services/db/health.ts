/** How a service with a database is: as well as its database, and what else it checks. */
import type { NatsConnection } from "nats";
import { clockOf } from "../bus/bus-clock.ts";
import type { ServiceFault, ServiceHealth } from "../bus/messages/health.ts";
import { sample } from "../runtime/repeat.ts";
import { DATABASE_LIMITS } from "./limits.ts";
import type { Database } from "./pool.ts";

/**
 * Asks the database whether it answers, then `findFault` about the rest, and then the clock. Each answer comes within twice `probeMs`,
 * and one statement at most waits for a database that does not.
 */
export function databaseHealth(
  nc: NatsConnection,
  database: Database,
  findFault: () => Promise<ServiceFault | null> = async () => null,
): () => Promise<ServiceHealth> {
  const probe = sample(async () => await database`select 1`, DATABASE_LIMITS.probeMs);
  const clockFault = (): ServiceFault | null => (clockOf(nc).isWrong() ? "clock_wrong" : null);
  return async () => {
    if ((await probe()) === undefined) return { databaseReady: false, fault: "database_unreachable" };
    return { databaseReady: true, fault: (await findFault()) ?? clockFault() };
  };
}
