import postgres from "postgres";
import { errorCode, UserError } from "../../services/runtime/user-error.ts";
import { deployLimits } from "../limits.ts";

/** PostgreSQL's code for a wrong password. */
const INVALID_PASSWORD = "28P01";

/** Makes the database when it is missing. `adminUrl` leads to another database of the same server. Throws UserError `postgres_password_lost`. */
export async function ensureDatabase(adminUrl: string, name: string): Promise<void> {
  await once(adminUrl, async (sql) => {
    const found = await sql`select 1 from pg_database where datname = ${name}`;
    if (found.length === 0) await sql`create database ${sql(name)}`;
  }).catch((error: unknown) => {
    if (errorCode(error) !== INVALID_PASSWORD) throw error;
    throw new UserError(
      "The password in secrets.json does not open the database; restore that file or remove the whole data folder.",
      { code: "postgres_password_lost", cause: error },
    );
  });
}

/** Throws UserError `database_unreachable` unless the database answers. The sentence leaves the password out. */
export async function checkDatabase(url: string): Promise<void> {
  await once(url, (sql) => sql`select 1`).catch((error: unknown) => {
    throw new UserError(
      `The PostgreSQL that DATABASE_URL names (${new URL(url).host}) cannot be used (${errorCode(error)}).`,
      {
        code: "database_unreachable",
        cause: error,
      },
    );
  });
}

async function once(url: string, work: (sql: postgres.Sql) => Promise<unknown>): Promise<void> {
  const sql = postgres(url, {
    max: 1,
    connect_timeout: deployLimits.externalServerMs / 1000,
    onnotice: () => undefined,
  });
  try {
    await work(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}
