/** The health of a service with a database: of the database, and of the other things that the service checks. */
import type { NatsConnection } from "nats";
import { clockOf } from "../bus/bus-clock.ts";
import type { ServiceFault, ServiceHealth } from "../bus/messages/health.ts";
import { sample } from "../runtime/repeat.ts";
import { databaseNowMs, isWrong, startComparison } from "./database-clock.ts";
import { DATABASE_LIMITS } from "./limits.ts";
import type { Database } from "./pool.ts";

interface Checked {
  readonly isReady: boolean;
  readonly isClockWrong: boolean;
}

/**
 * Returns a check whether the database accepts changes and is still the same installation's, and whether its clock is
 * wrong. A read-only one, such as a stand-by or a server with a full disk, counts as unreachable, and so does an empty or
 * another one at the same address.
 */
function databaseCheck(nc: NatsConnection, database: Database): () => Promise<Checked> {
  // The process has compared the first one with its bus at its start.
  let installation: string | undefined;
  return async () => {
    const aheadMsOf = startComparison(clockOf(nc));
    const [row] = await database<{ mode: string; id: string; now_ms: number }[]>`
      select current_setting('transaction_read_only') as mode, id, ${databaseNowMs(database)} as now_ms
      from installation`;
    installation ??= row?.id;
    const isReady = row?.mode === "off" && row.id === installation;
    return { isReady, isClockWrong: row !== undefined && isWrong(aheadMsOf(row.now_ms)) };
  };
}

/**
 * Checks whether the database answers, is the right one and accepts changes, then `findFault`, then the clocks. Each result
 * comes within twice `probeMs`. At most one statement waits for a database that does not answer.
 */
export function databaseHealth(
  nc: NatsConnection,
  database: Database,
  findFault: () => Promise<ServiceFault | null> = async () => null,
): () => Promise<ServiceHealth> {
  const probe = sample(databaseCheck(nc, database), DATABASE_LIMITS.probeMs);
  const clockFault = (): ServiceFault | null => (clockOf(nc).isWrong() ? "clock_wrong" : null);
  return async () => {
    const checked = await probe();
    if (checked?.isReady !== true) return { databaseReady: false, fault: "database_unreachable" };
    const fault = (await findFault()) ?? clockFault();
    return { databaseReady: true, fault, isDatabaseClockWrong: checked.isClockWrong };
  };
}
