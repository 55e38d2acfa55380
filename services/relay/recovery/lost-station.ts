/** What a station gets back that its log has lost. */
import { type Commit, decodeCommit } from "../../../machines/station/commit.ts";
import type { LostCollections } from "../../../machines/station/state.ts";
import { announceOrders } from "../../bus/messages/announce.ts";
import { call, type ReplyOf } from "../../bus/operation.ts";
import type { RelayDeps } from "../deps.ts";
import { hasCopiedCommit, selectUncopiedLogs } from "../sql/bus-state.ts";

export type KnownOrders = ReplyOf<typeof announceOrders>["stations"][number];
export type NewestCommit = Pick<Commit, "version" | "state"> & { readonly sequence: number };

/** From the stream's leader: a replica may be behind what was lost. */
export async function newestCommit(
  { bus, logs }: Pick<RelayDeps, "bus" | "logs">,
  stationId: number,
): Promise<NewestCommit | null> {
  const query = { last_by_subj: logs.subject(stationId) };
  const stored = await bus.jsm.streams.getMessage(logs.of(stationId).name, query);
  if (stored === null) return null;
  const { version, state } = decodeCommit(stored.string());
  return { version, sequence: stored.seq, state };
}

/** The log has lost commits that were not copied, so every order that is open now asks for a confirmation. */
export function askingForOpenOrders(known: KnownOrders): KnownOrders {
  const newest = Math.max(0, ...known.orders.filter(({ status }) => status === "open").map(({ orderId }) => orderId));
  if (newest === 0) return known;
  const lost = known.lost ?? { unclear: [], reasons: [], unclearThrough: 0, nextIntentNumber: 1 };
  return { ...known, lost: { ...lost, unclearThrough: Math.max(lost.unclearThrough, newest) } };
}

/**
 * What a description must bring with it, so that the station begins no collection without it. Undefined for a station that the
 * log has, and for a new one.
 */
export async function lostOf(
  deps: Pick<RelayDeps, "bus" | "logs" | "sql">,
  stationId: number,
): Promise<LostCollections | undefined> {
  const { bus, logs, sql } = deps;
  const isUncopied = (await selectUncopiedLogs(sql)).has(logs.of(stationId).name);
  if (!isUncopied && !(await hasCopiedCommit(sql, stationId))) return undefined;
  if ((await newestCommit(deps, stationId)) !== null) return undefined;
  const nothing = { stationId, version: 0, sequence: 0, orderIds: [], intentIds: [] };
  const [known] = (await call(bus.nc, announceOrders, { stations: [nothing] })).stations;
  if (known === undefined) return undefined;
  return (isUncopied ? askingForOpenOrders(known) : known).lost ?? undefined;
}
