/** Tells stations what their log has lost, or all that is known of them when the log has nothing. */
import { randomUUID } from "node:crypto";
import { decodeCommit } from "../../../machines/station/commit.ts";
import type { StationState } from "../../../machines/station/state.ts";
import { announceOrders, announceStations } from "../../bus/messages/announce.ts";
import { call } from "../../bus/operation.ts";
import { askStation } from "../../bus/station-client.ts";
import { insertOutbox, stationKey } from "../../db/outbox.ts";
import { RELAY_LIMITS } from "../limits.ts";
import { atOnce } from "./at-once.ts";
import { type AnnouncedStation, beliefOf, type News, newsFor, type OrderTruth } from "./station-news.ts";
import type { TellDeps, Told } from "./tell.ts";

/** Tells the next page of stations. */
export async function tellStations(deps: TellDeps, sinceId: number): Promise<Told> {
  const { nc } = deps;
  const page = await call(nc, announceStations, { sinceId, limit: RELAY_LIMITS.announcedStations });
  const states = new Map<number, StationState | null>();
  await atOnce(page.stations, RELAY_LIMITS.announcedAtOnce, async ({ stationId }) => {
    states.set(stationId, await newestState(deps, stationId));
  });
  const beliefs = page.stations.map(({ stationId }) => beliefOf(stationId, states.get(stationId) ?? null));
  const { stations } = await call(nc, announceOrders, { stations: beliefs });
  const truths = new Map(stations.map((truth) => [truth.stationId, truth]));
  let news = 0;
  await atOnce(page.stations, RELAY_LIMITS.announcedAtOnce, async (announced) => {
    deps.requireLease();
    const { stationId } = announced;
    const truth: OrderTruth = truths.get(stationId) ?? { stationId, orders: [], sales: [] };
    const own = newsFor(states.get(stationId) ?? null, announced, truth);
    news += own.length;
    await tell(deps, announced, own);
  });
  return { through: page.stations.at(-1)?.stationId ?? sinceId, hasMore: page.hasMore, news };
}

/** From the stream's leader: a replica may be behind what was lost. */
async function newestState({ jsm, logs }: TellDeps, stationId: number): Promise<StationState | null> {
  const stored = await jsm.streams.getMessage(logs.of(stationId).name, { last_by_subj: logs.subject(stationId) });
  return stored === null ? null : decodeCommit(stored.string()).state;
}

/** What a station does not take in time goes into the outbox, so that one that is stuck does not keep the others. */
async function tell(deps: TellDeps, { stationId }: AnnouncedStation, news: readonly News[]): Promise<void> {
  const options = { timeoutMs: RELAY_LIMITS.stationTimeoutMs };
  for (const [index, { actor, command }] of news.entries()) {
    try {
      const request = { commandId: `announce:${randomUUID()}`, actor, command };
      const { reply } = await askStation(deps.nc, stationId, request, options);
      if (!reply.ok) deps.log.error({ stationId, type: command.type, code: reply.code }, "an announcement was refused");
    } catch (error) {
      deps.log.warn({ err: error, stationId, left: news.length - index }, "a station is told later what it has lost");
      await leaveToOutbox(deps, stationId, news.slice(index));
      return;
    }
  }
}

async function leaveToOutbox({ sql }: TellDeps, stationId: number, news: readonly News[]): Promise<void> {
  await sql.begin(async (tx) => {
    for (const { actor, command } of news) {
      await insertOutbox(tx, { key: stationKey(stationId), kind: "station_command", stationId, actor, command });
    }
  });
}
