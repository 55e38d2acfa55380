/** How a service with a database is: as well as its database, and what else it checks. */
import type { NatsConnection } from "nats";
import { clockOf } from "../bus/bus-clock.ts";
import type { ServiceFault, ServiceHealth } from "../bus/messages/health.ts";
import { sample } from "../runtime/repeat.ts";
import { DATABASE_LIMITS } from "./limits.ts";
import type { Database } from "./pool.ts";

/** A database that can only be read, such as a stand-by or one whose disk is full, takes no change: it is as good as away. */
async function takesChanges(database: Database): Promise<boolean> {
  const [row] = await database<{ mode: string }[]>`select current_setting('transaction_read_only') as mode`;
  return row?.mode === "off";
}

/**
 * Asks the database whether it answers and takes changes, then `findFault` about the rest, and then the clock. Each answer comes within twice `probeMs`,
 * and one statement at most waits for a database that does not.
 */
export function databaseHealth(
  nc: NatsConnection,
  database: Database,
  findFault: () => Promise<ServiceFault | null> = async () => null,
): () => Promise<ServiceHealth> {
  const probe = sample(() => takesChanges(database), DATABASE_LIMITS.probeMs);
  const clockFault = (): ServiceFault | null => (clockOf(nc).isWrong() ? "clock_wrong" : null);
  return async () => {
    if ((await probe()) !== true) return { databaseReady: false, fault: "database_unreachable" };
    return { databaseReady: true, fault: (await findFault()) ?? clockFault() };
  };
}
