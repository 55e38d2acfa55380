/** The check that each process makes at its start: the streams and buckets are there, as this version needs them. */
import { setTimeout as delay } from "node:timers/promises";
import { UserError } from "../runtime/user-error.ts";
import { LAYOUT_VERSION, layoutOf, type MigratedLayout } from "./bus-layout.ts";
import type { Bus } from "./connection.ts";
import { isPassing, noQuorum, streamInfo } from "./ensure-streams.ts";
import { BUS_LIMITS } from "./limits.ts";
import { type QuorumLog, QuorumWait } from "./reach-jetstream.ts";
import { firstDifference, wantedConfigs } from "./stream-config.ts";
import { INSTALLATION } from "./streams.ts";

/** It carries the layout as every stream does, and `migrate` creates it before all others. */
const FIRST = `KV_${INSTALLATION.name}`;

export interface CheckOptions {
  readonly signal?: AbortSignal;
  /** With it the check waits for a quorum for as long as it takes, and says so. */
  readonly log?: QuorumLog;
}

/**
 * Returns the layout of the bus. Waits a while for a cluster that elects. Throws UserError `bus_not_migrated` with the next
 * step, or `nats_no_quorum`.
 */
export async function checkStreams(bus: Bus, { signal, log }: CheckOptions = {}): Promise<MigratedLayout> {
  const deadlineMs = performance.now() + BUS_LIMITS.checkStreamsMs;
  const wait = log === undefined ? undefined : new QuorumWait(log);
  for (;;) {
    try {
      const layout = await check(bus);
      wait?.end();
      return layout;
    } catch (cause) {
      if (!isPassing(cause)) throw cause;
      if (wait !== undefined) wait.go(bus.nc.getServer());
      else if (performance.now() > deadlineMs) throw noQuorum(bus, FIRST, cause);
    }
    signal?.throwIfAborted();
    await delay(BUS_LIMITS.ensurePauseMs, undefined, signal === undefined ? {} : { signal });
  }
}

async function check(bus: Bus): Promise<MigratedLayout> {
  const layout = layoutOf((await streamInfo(bus, FIRST))?.config.metadata);
  if (layout === undefined) throw notMigrated(bus, "has not been prepared for this service");
  await Promise.all(
    wantedConfigs(layout).map(async (wanted) => {
      const info = await streamInfo(bus, wanted.name);
      if (info === undefined) throw notMigrated(bus, `has no stream ${wanted.name}`);
      // A newer version has migrated: during an upgrade the older processes run until they are replaced.
      if (layout.version > LAYOUT_VERSION) return;
      const difference = firstDifference(info.config, wanted);
      if (difference === undefined) return;
      throw notMigrated(bus, `has a stream ${wanted.name} whose ${difference} is not what this version needs`);
    }),
  );
  return layout;
}

function notMigrated(bus: Bus, what: string): UserError {
  const sentence = `The NATS at ${bus.nc.getServer()} (NATS_URL) ${what}: run \`npm run migrate\`, and start again.`;
  return new UserError(sentence, { code: "bus_not_migrated" });
}
