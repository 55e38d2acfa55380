import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { errorCode, UserError } from "../../services/runtime/user-error.ts";

/** PostgreSQL's code for a wrong password. */
const INVALID_PASSWORD = "28P01";

/** Makes the database when it is missing. `adminUrl` leads to another database of the same server. Throws UserError `postgres_password_lost`. */
export async function ensureDatabase(adminUrl: string, name: string): Promise<void> {
  const sql = openDatabase({ url: adminUrl, maxConnections: 1, name: "device-payments start" });
  try {
    const found = await sql`select 1 from pg_database where datname = ${name}`;
    if (found.length === 0) await sql`create database ${sql(name)}`;
  } catch (error) {
    if (errorCode(error) !== INVALID_PASSWORD) throw error;
    throw new UserError(
      "The password in secrets.json does not open the database; restore that file or remove the whole data folder.",
      { code: "postgres_password_lost", cause: error },
    );
  } finally {
    await closeDatabase(sql);
  }
}
