/**
 * Notifies stations which provider they use. A change of a filial's choice marks the filial's stations, and a new
 * station begins as marked. The announcement writes an outbox row for each marked station. After the bus has lost data,
 * the recovery marks all stations again.
 */
import { setTimeout as delay } from "node:timers/promises";
import { flushKeys } from "../bus/flush-outbox.ts";
import type { Barrier } from "../bus/messages/caller.ts";
import { failuresOf } from "../bus/outage.ts";
import { insertOutboxRows, type OutboxRow, stationKey } from "../db/outbox.ts";
import type { Database } from "../db/pool.ts";
import type { ProvidersDeps } from "./deps.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import {
  type ChoiceRow,
  deliveredPositions,
  findMarks,
  hasUndeliveredStation,
  listStationIds,
  type MarkedStation,
  markStations,
  noteMarked,
  noteRecovered,
  type Place,
  readChoices,
  takeMarkedStations,
  takeMarkedStationsOf,
  takeRecovery,
} from "./sql/choices.ts";
import type { ConfigRow } from "./sql/configs.ts";

/**
 * Announces the provider to every marked station, or to the marked stations of one place. Several processes may do this
 * at once. Without a place, each skips the stations that another has locked. With a place, it waits for them, so that
 * all rows of the place are committed when the promise resolves.
 */
async function announceChoices(database: Database, place?: Place): Promise<number> {
  let total = 0;
  for (;;) {
    const announced = await announceSome(database, place);
    total += announced;
    if (announced < PROVIDER_LIMITS.stationsPerAnnouncement) return total;
  }
}

async function announceSome(database: Database, place: Place | undefined): Promise<number> {
  const { stationsPerAnnouncement: limit } = PROVIDER_LIMITS;
  return await database.begin(async (tx) => {
    const stations = await (place === undefined
      ? takeMarkedStations(tx, limit)
      : takeMarkedStationsOf(tx, place, limit));
    if (stations.length === 0) return 0;
    const choices = await readChoices(tx, [...new Set(stations.map((station) => station.filial_id))]);
    await insertOutboxRows(
      tx,
      stations.flatMap((station) => rowFor(station, choices)),
    );
    return stations.length;
  });
}

/** No row for a station of a filial that never had a config of the station's mode. */
function rowFor(station: MarkedStation, choices: readonly ChoiceRow[]): OutboxRow[] {
  const mode = station.sandbox ? "test" : "live";
  const choice = choices.find((other) => other.filial_id === station.filial_id && other.mode === mode);
  if (choice === undefined) return [];
  const { config_id: configId, revision } = choice;
  return [
    {
      key: stationKey(station.station_id),
      kind: "station_command",
      stationId: station.station_id,
      actor: { kind: "provider", id: configId ?? 0 },
      command: { type: "provider_put", provider: { configId, revision } },
    },
  ];
}

/** Notifies the stations of a changed config. Returns the barrier with which the caller's next read shows the change. */
export async function announceConfig(
  deps: ProvidersDeps,
  config: Pick<ConfigRow, "config_id" | "filial_id" | "mode">,
): Promise<Barrier> {
  const place: Place = { filialId: config.filial_id, mode: config.mode };
  const { flushedStations, flushTimeoutMs: timeoutMs } = PROVIDER_LIMITS;
  try {
    await announceChoices(deps.database, place);
    const stationIds = await listStationIds(deps.database, place, flushedStations + 1);
    if (stationIds.length > flushedStations) return await deliveryToAll(deps, place);
    return await flushKeys({ nc: deps.bus.nc, log: deps.log, timeoutMs }, stationIds.map(stationKey));
  } catch (error) {
    const failures = failuresOf(deps.log, "stations are notified of a provider with a delay");
    failures.failed(error, { configId: config.config_id });
    return { positions: {}, isUndelivered: true };
  }
}

/**
 * Waits until the relay's regular turns have delivered to all stations of a large place. One request each would take
 * longer.
 */
async function deliveryToAll({ database }: ProvidersDeps, place: Place): Promise<Barrier> {
  const { flushTimeoutMs, flushPollMs } = PROVIDER_LIMITS;
  const deadlineMs = performance.now() + flushTimeoutMs;
  while (await hasUndeliveredStation(database, place)) {
    if (performance.now() + flushPollMs >= deadlineMs) return { positions: {}, isUndelivered: true };
    await delay(flushPollMs);
  }
  return { positions: await deliveredPositions(database, place, PROVIDER_LIMITS.deliveredWithinMs) };
}

/**
 * Announces to the marked stations. After a loss of the bus it marks the next stations first. Mostly there is nothing
 * to do.
 */
export async function announceMarked(database: Database): Promise<void> {
  const { hasMarked, wantsRecovery } = await findMarks(database);
  if (wantsRecovery) await recoverStations(database);
  if (hasMarked || wantsRecovery) await announceChoices(database);
}

/** Marks the next stations for the announcement. */
async function recoverStations(database: Database): Promise<void> {
  await database.begin(async (tx) => {
    const recovery = await takeRecovery(tx);
    if (recovery === undefined) return;
    const newest = await markStations(tx, recovery.marked_through, PROVIDER_LIMITS.stationsPerRecovery);
    if (newest === undefined) await noteRecovered(tx, recovery.announced);
    else await noteMarked(tx, { ...recovery, marked_through: newest });
  });
}
