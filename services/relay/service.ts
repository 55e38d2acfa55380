/** The relay: takes what services wrote into the outbox to the stations' actors and into the buckets (design §3). */
import { closeDatabase, openDatabase } from "../db/pool.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { requireDatabaseUrl } from "../runtime/settings.ts";
import { standForElection } from "./election.ts";
import { removeOldRows } from "./housekeeping.ts";
import { lead } from "./lead.ts";
import { RELAY_LIMITS } from "./limits.ts";

/** Starts a relay. Several processes may run it: one delivers, the others stand by to succeed it. */
export async function startRelayService(deps: ServiceDeps): Promise<Service> {
  const databaseUrl = requireDatabaseUrl(deps.settings);
  const sql = openDatabase({ url: databaseUrl, name: "device-payments relay" });
  const { nc, js, jsm } = deps.bus;
  const work = { nc, js, jsm, sql, log: deps.log };
  const election = standForElection({ databaseUrl, log: deps.log, lead: (term) => lead(work, term) });
  const housekeeping = setInterval(() => void removeOldRows(work), RELAY_LIMITS.housekeepingIntervalMs);
  housekeeping.unref();
  // Whoever is told that this has started may write and flush at once; the subscription must be there by then.
  await election.stood;
  await nc.flush();
  return {
    stop: async () => {
      clearInterval(housekeeping);
      await election.stop();
      await closeDatabase(sql);
    },
  };
}
