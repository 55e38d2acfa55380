/**
 * The database's pulse: a number that the relay raises while it delivers, and then writes on the bus. When the bus has
 * a much higher pulse, it has worked with a newer state of this database: the database was restored from a backup. It
 * would assign ids of orders and payments again that stations and devices already have, and it lacks payments without
 * any sign.
 */
import { databaseOlder, type OwnerOptions, readPulse } from "../bus/installation.ts";
import { BUS_LIMITS } from "../bus/limits.ts";
import { UserError } from "../runtime/user-error.ts";
import { DATABASE_LIMITS } from "./limits.ts";
import { closeDatabase, openDatabase } from "./pool.ts";

/** Throws UserError `database_older` when the database is older than its bus. */
export async function checkPulse({ bus, installation, ...waiting }: OwnerOptions, databaseUrl: string): Promise<void> {
  // It reads the bus first, because the pulse of the bus is never higher than the database's pulse at that moment.
  const onBus = await readPulse(bus, waiting);
  const sql = openDatabase({ url: databaseUrl, maxConnections: 1, name: "pulse" });
  try {
    const [row] = await sql<{ pulse: number }[]>`select pulse from installation`;
    if (onBus > (row?.pulse ?? 0) + BUS_LIMITS.pulsesAhead) throw databaseOlder(bus, installation.database);
  } finally {
    await closeDatabase(sql);
  }
}

/**
 * Prepares a database that was restored from a backup for an empty bus. All sequences continue far after the ids that
 * were assigned since the backup. Each station asks the cashier before the collection of an open order, because the
 * order may be paid. Throws UserError `still_running` while a relay delivers.
 */
export async function continueAfterRestore(databaseUrl: string): Promise<void> {
  const sql = openDatabase({ url: databaseUrl, maxConnections: 1, name: "restored" });
  try {
    await sql.begin(async (tx) => {
      const [lease] = await tx`select from relay_lease where lapses_at > clock_timestamp() for update`;
      if (lease !== undefined) {
        const sentence = "A relay works with this database: stop all processes of the installation, and try again.";
        throw new UserError(sentence, { code: "still_running" });
      }
      await tx`
        select setval(format('%I.%I', schemaname, sequencename)::regclass,
          coalesce(last_value, start_value) + ${DATABASE_LIMITS.restoredGap})
        from pg_sequences where schemaname = 'public' and data_type = 'bigint'::regtype`;
      await tx`update bus_marks set uncopied = true where stream like 'STATION\_LOG\_%'`;
    });
  } finally {
    await closeDatabase(sql);
  }
}
