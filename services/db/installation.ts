/** Refuses to work with a bus and a database of two installations. */
import type { Bus } from "../bus/connection.ts";
import { claimBus } from "../bus/installation.ts";
import { hostAndPort, parseNatsAddress } from "../bus/nats-address.ts";
import { UserError } from "../runtime/user-error.ts";
import { closeDatabase, openDatabase } from "./pool.ts";

export interface InstallationOptions {
  readonly bus: Bus;
  readonly natsUrl: string;
  readonly databaseUrl: string;
  readonly replicas: number;
}

/**
 * Claims the bus for the installation that the database belongs to, and returns its id. Throws UserError
 * `installations_differ` when the bus belongs to another one; then nothing on it was changed.
 */
export async function claimInstallation(options: InstallationOptions): Promise<string> {
  const id = await readInstallationId(options.databaseUrl);
  const owner = await claimBus(options.bus, id, options);
  if (owner === id) return id;
  const nats = parseNatsAddress(options.natsUrl)?.servers.map(hostAndPort).join(", ");
  throw new UserError(
    `Two installations meet: the NATS at ${nats} belongs to ${owner}, and the database at ${nameDatabase(options.databaseUrl)} belongs to ${id}; set NATS_URL and DATABASE_URL to servers of the same installation, or empty that NATS if the other database is gone for good.`,
    { code: "installations_differ" },
  );
}

async function readInstallationId(databaseUrl: string): Promise<string> {
  const sql = openDatabase({ url: databaseUrl, maxConnections: 1, name: "device-payments installation" });
  try {
    const [row] = await sql<{ id: string }[]>`select id from installation`;
    if (row === undefined) throw new Error("The table installation is empty.");
    return row.id;
  } finally {
    await closeDatabase(sql);
  }
}

/** Host, port and name; never the user or the password. */
function nameDatabase(databaseUrl: string): string {
  const { host, pathname, searchParams } = new URL(databaseUrl);
  return `${host || searchParams.get("host")}${pathname}`;
}
