/**
 * Which installation a bus belongs to. The first installation that starts on a bus writes its id there; another one that
 * comes later would mix its stations, devices and money with the first one's, and is refused.
 */
import { JetStreamApiCodes, JetStreamApiError } from "@nats-io/jetstream";
import type { Bus } from "./connection.ts";
import { ensureBucket } from "./ensure-streams.ts";
import { BUS_LIMITS } from "./limits.ts";
import { INSTALLATION } from "./streams.ts";

const STREAM = `KV_${INSTALLATION.name}`;
const SUBJECT = `$KV.${INSTALLATION.name}.id`;

/** The id of the installation that the bus belongs to: the one that it named first, which is `id` if it named none before. */
export async function claimBus(bus: Bus, id: string, options: { readonly replicas: number }): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const owner = await readOwner(bus);
    if (owner !== undefined) return owner;
    try {
      await ensureBucket(bus, INSTALLATION, options);
      await bus.js.publish(SUBJECT, id, { expect: { lastSubjectSequence: 0 } });
      return id;
    } catch (error) {
      // Another process has written at the same moment: what it wrote counts, and is read.
      if (!(error instanceof JetStreamApiError) || attempt === BUS_LIMITS.claimAttempts) throw error;
    }
  }
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
