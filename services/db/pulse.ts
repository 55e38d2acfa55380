/**
 * The database's pulse: a number that the relay raises while it delivers, and then writes on the bus. A bus that has a much
 * higher one has met a newer state of this database. Such a database was restored from a backup: it would give numbers of
 * orders and payments to others that stations and devices know already, and it misses payments without a word.
 */
import { databaseOlder, type OwnerOptions, readPulse } from "../bus/installation.ts";
import { BUS_LIMITS } from "../bus/limits.ts";
import { UserError } from "../runtime/user-error.ts";
import { DATABASE_LIMITS } from "./limits.ts";
import { closeDatabase, openDatabase } from "./pool.ts";

/** Throws UserError `database_older` where the database is older than its bus. */
export async function checkPulse({ bus, installation }: OwnerOptions, databaseUrl: string): Promise<void> {
  // The bus first: its pulse is never higher than the one that the database had by then.
  const onBus = await readPulse(bus);
  const sql = openDatabase({ url: databaseUrl, maxConnections: 1, name: "pulse" });
  try {
    const [row] = await sql<{ pulse: number }[]>`select pulse from installation`;
    if (onBus > (row?.pulse ?? 0) + BUS_LIMITS.pulsesAhead) throw databaseOlder(bus, installation.database);
  } finally {
    await closeDatabase(sql);
  }
}

/**
 * Prepares a database that was restored from a backup for an empty bus. All numbers go on far behind those that were given
 * after the backup, and each station asks before an open order is collected, because it may be paid. Throws UserError
 * `still_running` while a relay delivers.
 */
export async function goOnRestored(databaseUrl: string): Promise<void> {
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
