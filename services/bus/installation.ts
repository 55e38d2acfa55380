/**
 * Which installation a bus belongs to. `migrate` writes the installation's id on the bus once. A process of another
 * installation does not start: it would mix its stations, devices and payments with those of the first one.
 */
import { JetStreamApiCodes, JetStreamApiError } from "@nats-io/jetstream";
import { UserError } from "../runtime/user-error.ts";
import type { Bus } from "./connection.ts";
import { type CheckOptions, type EnsureOptions, ensureInstallationBucket, insist } from "./ensure-streams.ts";
import { BUS_LIMITS } from "./limits.ts";
import { isNoResponders } from "./refusals.ts";
import { layoutOf } from "./stream-config.ts";
import { INSTALLATION, STATEMENT_FILES } from "./streams.ts";

const STREAM = `KV_${INSTALLATION.name}`;
const FILES = `OBJ_${STATEMENT_FILES.name}`;
const SUBJECT = `$KV.${INSTALLATION.name}.id`;
const PULSE_SUBJECT = `$KV.${INSTALLATION.name}.pulse`;

export interface Installation {
  readonly id: string;
  /** The address of its database, for a person: host, port and name, without user and password. */
  readonly database: string;
}

/** With `log` a check waits for a quorum without a limit. */
export interface OwnerOptions extends CheckOptions {
  readonly bus: Bus;
  readonly installation: Installation;
}

/**
 * Writes the installation's id on a bus that has none. Throws UserError `installations_differ`, without a change of the
 * bus, when the bus belongs to another installation.
 */
export async function claimBus({ bus, installation }: OwnerOptions, options: EnsureOptions): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const owner = await readEntry(bus, SUBJECT);
    if (owner !== undefined && owner !== installation.id) throw installationsDiffer(bus, owner, installation);
    // Always, also when the bucket exists: another program may have ended after it created the bucket and before it
    // wrote the id.
    await ensureInstallationBucket(bus, options);
    if (owner !== undefined) return;
    try {
      await bus.js.publish(SUBJECT, installation.id, { expect: { lastSubjectSequence: 0 } });
      return;
    } catch (error) {
      if (attempt === BUS_LIMITS.claimAttempts) throw error;
      // Another program has written an id at the same moment: that id counts, and the next attempt reads it.
      if (error instanceof JetStreamApiError) continue;
      // The bucket is new, and not every server of the cluster knows yet which servers store it.
      if (!(error instanceof Error && isNoResponders(error.cause))) throw error;
      await new Promise((resolve) => setTimeout(resolve, BUS_LIMITS.ensurePauseMs));
    }
  }
}

/** Throws UserError `installations_differ`, or `bus_not_migrated` when the bus belongs to no installation. */
export async function checkOwner({ bus, installation, ...waiting }: OwnerOptions): Promise<void> {
  const owner = await readEntry(bus, SUBJECT, waiting);
  if (owner === undefined) {
    const sentence = `The NATS at ${bus.nc.getServer()} (NATS_URL) belongs to no installation yet: run \`npm run migrate\`, and start again.`;
    throw new UserError(sentence, { code: "bus_not_migrated" });
  }
  if (owner !== installation.id) throw installationsDiffer(bus, owner, installation);
}

/**
 * Checks to which installation the bus belongs, now and after each reconnect: another server may answer at the address.
 * `onRefused` receives the UserError when the bus then belongs to another installation. A bus that has lost its data
 * belongs to no installation until `migrate` has run. The returned function ends the checks.
 */
export async function keepOwnerChecked(
  options: OwnerOptions,
  onRefused: (error: UserError) => void,
): Promise<() => void> {
  const { bus, installation, signal } = options;
  await checkOwner(options);
  let isChecking = false;
  const checkAgain = async (): Promise<void> => {
    if (isChecking) return;
    isChecking = true;
    try {
      while (bus.isUp()) {
        try {
          // Without the log: a connection that is lost during the check, or an election, is no reason for a warning.
          return await checkOwner({ bus, installation, signal });
        } catch (error) {
          if (error instanceof UserError && error.code === "installations_differ") return onRefused(error);
          // JetStream is not ready yet, or the bus has lost its data. When the connection is lost, the next reconnect
          // starts another check.
          await new Promise((resolve) => setTimeout(resolve, BUS_LIMITS.ownerPauseMs));
        }
      }
    } finally {
      isChecking = false;
    }
  };
  return bus.onChange((isUp) => {
    if (isUp) void checkAgain();
  });
}

/** The newest pulse of the database that is stored on the bus (`services/db/pulse.ts`); 0 when there is none. */
export async function readPulse(bus: Bus, waiting: CheckOptions = {}): Promise<number> {
  return Number((await readEntry(bus, PULSE_SUBJECT, waiting)) ?? 0);
}

export async function writePulse(bus: Bus, pulse: number): Promise<void> {
  await bus.js.publish(PULSE_SUBJECT, String(pulse));
}

/** UserError `database_older`: the bus has worked with a newer state of the database. */
export function databaseOlder(bus: Bus, database: string): UserError {
  const sentence = `The database at ${database} (DATABASE_URL) is older than the NATS at ${bus.nc.getServer()} (NATS_URL), as one is that was restored from a backup: stop all processes, run \`npm run migrate -- --database-restored\`, and start again; with \`npm start\` run \`npm start -- --database-restored\` in place of both.`;
  return new UserError(sentence, { code: "database_older" });
}

/**
 * Deletes the installation's streams and buckets from the bus, the bucket with its id last. Uploaded files stay. Throws
 * UserError `installations_differ`, without a change of the bus, when the bus belongs to another installation.
 */
export async function emptyBus({ bus, installation }: OwnerOptions): Promise<void> {
  const owner = await readEntry(bus, SUBJECT);
  if (owner !== undefined && owner !== installation.id) throw installationsDiffer(bus, owner, installation);
  const names: string[] = [];
  for await (const { config } of bus.jsm.streams.list()) {
    if (layoutOf(config.metadata) !== undefined && config.name !== FILES) names.push(config.name);
  }
  for (const name of [...names.filter((each) => each !== STREAM), ...names.filter((each) => each === STREAM)]) {
    await bus.jsm.streams.delete(name);
  }
}

/**
 * Undefined when the bus is new, or has lost its data. Waits while the bucket elects its leader. Throws UserError
 * `nats_no_quorum` when that takes too long.
 */
async function readEntry(bus: Bus, subject: string, waiting: CheckOptions = {}): Promise<string | undefined> {
  return await insist(bus, STREAM, { ...waiting, withinMs: BUS_LIMITS.checkStreamsMs }, async () => {
    try {
      return (await bus.jsm.streams.getMessage(STREAM, { last_by_subj: subject }))?.string();
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound) return undefined;
      throw error;
    }
  });
}

function installationsDiffer(bus: Bus, owner: string, installation: Installation): UserError {
  const sentence = `Two installations meet: the NATS at ${bus.nc.getServer()} belongs to ${owner}, and the database at ${installation.database} belongs to ${installation.id}; set NATS_URL and DATABASE_URL to servers of the same installation, or empty that NATS if the other database is gone for good.`;
  return new UserError(sentence, { code: "installations_differ" });
}
