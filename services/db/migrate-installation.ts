/**
 * Prepares an installation for this version: first the schema of the database, then the streams and buckets of the bus.
 * No other code creates or changes them. Concurrent migrations take turns, and a repeated migration changes nothing.
 */

import { type Bus, connectBus } from "../bus/connection.ts";
import { ensureStreams, readLayout } from "../bus/ensure-streams.ts";
import { claimBus, emptyBus, type Installation } from "../bus/installation.ts";
import { hostAndPort, parseNatsAddress, type ServerAccess } from "../bus/nats-server.ts";
import { type BusLayout, LAYOUT_VERSION, type MigratedLayout } from "../bus/stream-config.ts";
import { UserError } from "../runtime/user-error.ts";
import { readInstallation, readLogCount } from "./installation.ts";
import { DATABASE_LIMITS } from "./limits.ts";
import { migrate } from "./migrate.ts";
import { checkPulse, continueAfterRestore } from "./pulse.ts";
import { addressOf, reachDatabase } from "./reach-database.ts";

interface MigrateInstallationOptions {
  readonly databaseUrl: string;
  readonly natsUrl: string;
  /** How the command identifies itself to the bus. */
  readonly natsAccess?: ServerAccess;
  /**
   * An omitted member keeps its stored value. Where none is stored, it is 1 on a single server. A cluster then requires it:
   * `replicas` for a new bus, `logs` for a new installation.
   */
  readonly layout: Partial<BusLayout>;
  /** The database was restored from a backup and is now the valid state, so the migration empties the bus (`pulse.ts`). */
  readonly isRestored?: boolean | undefined;
  /** Receives one line for each completed step, and one for each long wait. */
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** Throws a UserError whose sentence names the next step. Completed steps stay completed, and the next run continues. */
export async function migrateInstallation(options: MigrateInstallationOptions): Promise<Installation> {
  const { databaseUrl, natsUrl, natsAccess, layout, isRestored, log, signal } = options;
  const stop = signal === undefined ? {} : { signal };
  const database = `the PostgreSQL at ${addressOf(databaseUrl)} (DATABASE_URL)`;
  await logLongWait(log, `for ${database}`, reachDatabase({ url: databaseUrl, ...stop }));
  const change = migrate({ databaseUrl, log, ...stop });
  await logLongWait(log, `until the schema of ${database} is changed, by this or another program`, change);
  log("The database has the schema of this version.");
  const installation = await readInstallation(databaseUrl);
  if (isRestored === true) {
    await continueAfterRestore(databaseUrl);
    log("The restored database continues with ids above all that were assigned after its backup.");
  }
  const found = await migrateBus({
    natsUrl,
    installation,
    databaseUrl,
    layout,
    isRestored,
    log,
    ...(natsAccess === undefined ? {} : { natsAccess }),
    ...stop,
  });
  log(
    `The streams and buckets are as this version needs them, with ${copies(found.replicas)} each and ${logCount(found.logs)}.`,
  );
  return installation;
}

interface MigrateBusOptions
  extends Pick<
    MigrateInstallationOptions,
    "natsUrl" | "natsAccess" | "databaseUrl" | "layout" | "isRestored" | "log" | "signal"
  > {
  readonly installation: Installation;
}

/** Migrates only the bus of an installation whose database is migrated. Returns the layout that the bus has now. */
export async function migrateBus(options: MigrateBusOptions): Promise<BusLayout> {
  const { natsUrl, natsAccess, log, signal } = options;
  const quiet = { info: () => undefined, warn: () => undefined };
  const access = natsAccess === undefined ? {} : { access: natsAccess };
  const stop = signal === undefined ? {} : { signal };
  const servers = (parseNatsAddress(natsUrl)?.servers ?? []).map(hostAndPort).join(", ");
  const nats = `the NATS at ${servers} (NATS_URL)`;
  const connecting = connectBus({ url: natsUrl, name: "migrate", log: quiet, ...access, ...stop });
  const bus = await logLongWait(log, `for ${nats}`, connecting);
  try {
    return await logLongWait(log, `until ${nats} keeps all copies of the streams`, prepareBus(bus, options));
  } finally {
    await bus.close();
  }
}

async function prepareBus(bus: Bus, options: MigrateBusOptions): Promise<BusLayout> {
  const { installation, databaseUrl, layout, isRestored, signal } = options;
  const stop = signal === undefined ? {} : { signal };
  const known = await readLayout(bus, stop);
  // With `isRestored` the bus is emptied, and no process runs.
  if (isRestored !== true) refuseNewerLayout(bus, known);
  // On a new bus the stations stay divided as before: the database has a position and a loss of each log, not of a station.
  const logs = known?.logs ?? (await readLogCount(databaseUrl));
  const wanted = { ...newLayout(bus, layout, { replicas: known?.replicas, logs }), ...stop };
  if (isRestored === true) await emptyBus({ bus, installation });
  else await checkPulse({ bus, installation }, databaseUrl);
  await claimBus({ bus, installation }, wanted);
  await ensureStreams(bus, wanted);
  return wanted;
}

/**
 * Throws UserError `layout_newer`: an older `migrate` would write its settings into the streams, and the newer processes that
 * still run could not start again.
 */
function refuseNewerLayout(bus: Bus, known: MigratedLayout | undefined): void {
  if (known === undefined || known.version <= LAYOUT_VERSION) return;
  const sentence = `The NATS at ${bus.nc.getServer()} (NATS_URL) was prepared by a newer version of this program (layout ${known.version}, and this one has ${LAYOUT_VERSION}): run the newer version. Processes that are one version older work with it: to go back to them, start them without \`migrate\`.`;
  throw new UserError(sentence, { code: "layout_newer" });
}

/** Logs what the work waits for, once the wait is so long that a person would wonder. */
async function logLongWait<T>(log: (line: string) => void, forWhat: string, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => log(`Waiting ${forWhat} …`), DATABASE_LIMITS.longWaitMs);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}

/** The part of the layout that the installation already has. */
type KnownLayout = { readonly [member in keyof BusLayout]: BusLayout[member] | undefined };

function newLayout(bus: Bus, wanted: Partial<BusLayout>, known: KnownLayout): BusLayout {
  if (known.logs !== undefined && wanted.logs !== undefined && wanted.logs !== known.logs) {
    const sentence = `This installation has ${logCount(known.logs)}, and their number never changes: leave --logs out.`;
    throw new UserError(sentence, { code: "logs_fixed" });
  }
  // A new cluster has no default. With one log, the end of one server would stop all stations, and the number of logs never
  // changes.
  const byDefault = bus.nc.info?.cluster === undefined ? 1 : undefined;
  const replicas = wanted.replicas ?? known.replicas ?? byDefault;
  const logs = wanted.logs ?? known.logs ?? byDefault;
  if (replicas !== undefined && logs !== undefined) return { replicas, logs };
  const choice =
    known.logs === undefined
      ? "choose how many copies it keeps of each stream, and among how many logs the stations are divided, for example `npm run migrate -- --replicas 3 --logs 6`; the number of logs never changes"
      : "choose how many copies it keeps of each stream, for example `npm run migrate -- --replicas 3`";
  const sentence = `The NATS at ${bus.nc.getServer()} (NATS_URL) is a new cluster: ${choice}.`;
  throw new UserError(sentence, { code: "layout_needed" });
}

function logCount(count: number): string {
  return count === 1 ? "1 station log" : `${count} station logs`;
}

function copies(count: number): string {
  return count === 1 ? "1 copy" : `${count} copies`;
}
