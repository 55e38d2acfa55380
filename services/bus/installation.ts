/**
 * Which installation a bus belongs to. The first installation that starts on a bus writes its id there; another one that
 * comes later would mix its stations, devices and money with the first one's, and is refused.
 */
import { JetStreamApiCodes, JetStreamApiError } from "@nats-io/jetstream";
import { UserError } from "../runtime/user-error.ts";
import type { Bus } from "./connection.ts";
import { ensureBucket } from "./ensure-streams.ts";
import { BUS_LIMITS } from "./limits.ts";
import { INSTALLATION } from "./streams.ts";

const STREAM = `KV_${INSTALLATION.name}`;
const SUBJECT = `$KV.${INSTALLATION.name}.id`;

export interface Installation {
  readonly id: string;
  /** Where its database is, for a person: host, port and name, without user and password. */
  readonly database: string;
}

export interface ClaimOptions {
  readonly bus: Bus;
  readonly installation: Installation;
  readonly replicas: number;
}

/**
 * Claims the bus for the installation. Throws UserError `installations_differ` when it belongs to another one; then nothing
 * on it was changed.
 */
export async function claimBus({ bus, installation, replicas }: ClaimOptions): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const owner = await readOwner(bus);
    if (owner === installation.id) return;
    if (owner !== undefined) throw installationsDiffer(bus, owner, installation);
    try {
      await ensureBucket(bus, INSTALLATION, { replicas });
      await bus.js.publish(SUBJECT, installation.id, { expect: { lastSubjectSequence: 0 } });
      return;
    } catch (error) {
      // Another process has written at the same moment: what it wrote counts, and is read.
      if (!(error instanceof JetStreamApiError) || attempt === BUS_LIMITS.claimAttempts) throw error;
    }
  }
}

/**
 * Claims the bus, and claims it again whenever the connection is back: the bus may have lost its data, or another server
 * may answer at its address. `onRefused` receives the UserError when it then belongs to another installation. Returns what
 * ends that.
 */
export async function keepBusClaimed(
  options: ClaimOptions,
  onRefused: (error: UserError) => void,
): Promise<() => void> {
  const { bus } = options;
  await claimBus(options);
  const claimAgain = async (): Promise<void> => {
    let isClaimed = false;
    while (!isClaimed && bus.isUp()) {
      try {
        await claimBus(options);
        isClaimed = true;
      } catch (error) {
        if (error instanceof UserError && error.code === "installations_differ") return onRefused(error);
        // JetStream is not ready yet. A connection that is lost again comes back with a claim of its own.
        await new Promise((resolve) => setTimeout(resolve, BUS_LIMITS.claimPauseMs));
      }
    }
  };
  return bus.onChange((isUp) => {
    if (isUp) void claimAgain();
  });
}

/** Undefined: the bus is new, or it has lost its data. */
async function readOwner(bus: Bus): Promise<string | undefined> {
  try {
    return (await bus.jsm.streams.getMessage(STREAM, { last_by_subj: SUBJECT }))?.string();
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound) return undefined;
    throw error;
  }
}

function installationsDiffer(bus: Bus, owner: string, installation: Installation): UserError {
  const sentence = `Two installations meet: the NATS at ${bus.nc.getServer()} belongs to ${owner}, and the database at ${installation.database} belongs to ${installation.id}; set NATS_URL and DATABASE_URL to servers of the same installation, or empty that NATS if the other database is gone for good.`;
  return new UserError(sentence, { code: "installations_differ" });
}
