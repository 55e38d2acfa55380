/** Creates the streams and buckets as `npm run migrate` does, on a bus that belongs to a migrated database. */
import type { BusLayout } from "../../services/bus/stream-config.ts";
import { readInstallation } from "../../services/db/installation.ts";
import { migrateBus } from "../../services/db/migrate-installation.ts";

export async function prepareBus(
  natsUrl: string,
  databaseUrl: string,
  layout: Partial<BusLayout> = {},
): Promise<BusLayout> {
  const installation = await readInstallation(databaseUrl);
  return await migrateBus({ natsUrl, installation, databaseUrl, layout, log: () => undefined });
}
