/**
 * How stations learn which provider they use. A change marks the filial's stations as not told, a new station is born as
 * such, and whoever finds one writes its outbox row: so the two never have to know of each other.
 */
import { setTimeout as delay } from "node:timers/promises";
import { flushKeys } from "../../bus/flush-outbox.ts";
import type { Barrier } from "../../bus/messages/caller.ts";
import { insertOutboxRows, type OutboxRow, stationKey } from "../../db/outbox.ts";
import type { Database } from "../../db/pool.ts";
import type { ProvidersDeps } from "../deps.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import {
  type ChoiceRow,
  hasUndeliveredStation,
  listStationIds,
  readChoices,
  takeUntoldStations,
  type UntoldStation,
} from "../sql/choices.ts";
import type { ConfigRow } from "../sql/configs.ts";

/** Tells every station that has not been told. Several processes may do it at once: they skip what another has taken. */
export async function tellStations(database: Database): Promise<number> {
  let total = 0;
  for (;;) {
    const told = await tellSome(database);
    total += told;
    if (told < PROVIDER_LIMITS.stationsPerTelling) return total;
  }
}

async function tellSome(database: Database): Promise<number> {
  return await database.begin(async (sql) => {
    const stations = await takeUntoldStations(sql, PROVIDER_LIMITS.stationsPerTelling);
    if (stations.length === 0) return 0;
    const choices = await readChoices(sql, [...new Set(stations.map((station) => station.filial_id))]);
    await insertOutboxRows(
      sql,
      stations.flatMap((station) => rowFor(station, choices)),
    );
    return stations.length;
  });
}

/** A station of a filial that never had a config of its mode has nothing to hear. */
function rowFor(station: UntoldStation, choices: readonly ChoiceRow[]): OutboxRow[] {
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

/** Notifies the stations of a changed config now and has the relay deliver, so that the caller reads what it wrote. */
export async function announce(deps: ProvidersDeps, config: ConfigRow): Promise<Barrier> {
  const { filial_id: filialId, mode } = config;
  const { flushedStations, flushTimeoutMs: timeoutMs } = PROVIDER_LIMITS;
  try {
    await deps.tellStations();
    const stationIds = await listStationIds(deps.database, { filialId, mode }, flushedStations + 1);
    if (stationIds.length > flushedStations) return await deliveryToAll(deps, { filialId, mode });
    return await flushKeys({ nc: deps.bus.nc, log: deps.log, timeoutMs }, stationIds.map(stationKey));
  } catch (error) {
    deps.log.warn({ reason: String(error), configId: config.config_id }, "stations learn of a provider a moment later");
    return { positions: {}, isUndelivered: true };
  }
}

/** Waits until the relay has delivered to all of many stations, by its own turns: asking for each would take its time. */
async function deliveryToAll(
  { database }: ProvidersDeps,
  place: { readonly filialId: number; readonly mode: ConfigRow["mode"] },
): Promise<Barrier> {
  const { flushTimeoutMs, flushPollMs } = PROVIDER_LIMITS;
  const deadlineMs = performance.now() + flushTimeoutMs;
  while (await hasUndeliveredStation(database, place)) {
    if (performance.now() + flushPollMs >= deadlineMs) return { positions: {}, isUndelivered: true };
    await delay(flushPollMs);
  }
  return { positions: {} };
}
