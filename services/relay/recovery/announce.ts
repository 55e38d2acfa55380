/**
 * Announces to the bus what PostgreSQL knows and the bus has lost, page by page: restores missing entries, and removes entries
 * that have come back although they were deleted. Everything is idempotent: states are compared by revision, and entries are
 * put once.
 */
import { randomUUID } from "node:crypto";
import type { OrderSnapshot, ShownOrder, StationState } from "../../../machines/station/state.ts";
import * as messages from "../../bus/messages/announce.ts";
import type { StationRequest } from "../../bus/messages/station-commands.ts";
import { call, type ReplyOf, type RequestOf } from "../../bus/operation.ts";
import { failuresOf } from "../../bus/outage.ts";
import { askStation } from "../../bus/station-client.ts";
import { type BucketDefinition, CREDENTIALS, SESSIONS } from "../../bus/streams.ts";
import { insertOutbox, stationKey } from "../../db/outbox.ts";
import { deleteEntry, hasEntry, putFirst, setSwitch } from "../buckets.ts";
import type { RelayDeps } from "../deps.ts";
import { RELAY_LIMITS } from "../limits.ts";
import { type AnnouncedPart, selectUncopiedLogs } from "../sql/bus-state.ts";
import { askingForOpenOrders, type KnownOrders, type NewestCommit, newestCommit } from "./lost-station.ts";

export interface AnnounceDeps extends Omit<RelayDeps, "metrics"> {
  /** Throws when another relay may deliver by now: what was read before a stall must not be written after it. */
  readonly requireLease: () => void;
}

interface AnnouncedPage {
  /** The newest id of the page. */
  readonly through: number;
  readonly hasMore: boolean;
  /** How much of it the bus did not know. */
  readonly restored: number;
}

/** Announces the page after an id. */
export const ANNOUNCE: Readonly<
  Record<AnnouncedPart, (deps: AnnounceDeps, sinceId: number) => Promise<AnnouncedPage>>
> = {
  switches: announceSwitches,
  sessions: (deps, sinceId) =>
    announceEntries(deps, SESSIONS, sinceId, (page) => call(deps.bus.nc, messages.announceSessions, page)),
  stations: announceStations,
  credentials: (deps, sinceId) =>
    announceEntries(deps, CREDENTIALS, sinceId, (page) => call(deps.bus.nc, messages.announceCredentials, page)),
};

async function announceSwitches(deps: AnnounceDeps, sinceId: number): Promise<AnnouncedPage> {
  const limit = RELAY_LIMITS.announcedEntries;
  const { entries, hasMore } = await call(deps.bus.nc, messages.announceSwitches, { sinceId, limit });
  const restored = await sumAtOnce(entries, async ({ entry }) => {
    deps.requireLease();
    return (await setSwitch(deps.bus, entry)).isNew ? 1 : 0;
  });
  return { through: entries.at(-1)?.id ?? sinceId, hasMore, restored };
}

interface EntryPage {
  readonly entries: readonly { readonly id: number; readonly hash: string; readonly entry: object | null }[];
  readonly hasMore: boolean;
}

async function announceEntries(
  deps: AnnounceDeps,
  bucket: BucketDefinition,
  sinceId: number,
  read: (page: { sinceId: number; limit: number }) => Promise<EntryPage>,
): Promise<AnnouncedPage> {
  const { entries, hasMore } = await read({ sinceId, limit: RELAY_LIMITS.announcedEntries });
  const restored = await sumAtOnce(entries, async ({ hash, entry }) => {
    deps.requireLease();
    return (await restoreEntry(deps, bucket, hash, entry)) ? 1 : 0;
  });
  return { through: entries.at(-1)?.id ?? sinceId, hasMore, restored };
}

/** Whether anything changed. A deletion stays, also one that came after the page was read. */
async function restoreEntry(
  { bus }: AnnounceDeps,
  bucket: BucketDefinition,
  hash: string,
  entry: object | null,
): Promise<boolean> {
  if (entry !== null) return (await putFirst(bus, bucket, hash, entry)) !== undefined;
  if (!(await hasEntry(bus, bucket, hash))) return false;
  await deleteEntry(bus, bucket, hash);
  return true;
}

type AnnouncedStation = ReplyOf<typeof messages.announceStations>["stations"][number];
type OpenWork = RequestOf<typeof messages.announceOrders>["stations"][number];
type MissingCommand = Pick<StationRequest, "actor" | "command">;

async function announceStations(deps: AnnounceDeps, sinceId: number): Promise<AnnouncedPage> {
  const { nc } = deps.bus;
  const page = await call(nc, messages.announceStations, { sinceId, limit: RELAY_LIMITS.announcedStations });
  const newest = new Map<number, NewestCommit | null>();
  await sumAtOnce(page.stations, async ({ stationId }) => {
    newest.set(stationId, await newestCommit(deps, stationId));
    return 0;
  });
  const open = page.stations.map(({ stationId }) => openWork(stationId, newest.get(stationId) ?? null));
  const { stations } = await call(nc, messages.announceOrders, { stations: open });
  const orders = new Map(stations.map((known) => [known.stationId, known]));
  const uncopied = await selectUncopiedLogs(deps.sql);
  const restored = await sumAtOnce(page.stations, async (announced) => {
    deps.requireLease();
    const { stationId } = announced;
    const all = orders.get(stationId) ?? { stationId, orders: [], sales: [], lost: null };
    const known = uncopied.has(deps.logs.of(stationId).name) ? askingForOpenOrders(all) : all;
    const missing = missingCommands(newest.get(stationId)?.state ?? null, announced, known);
    await commandStation(deps, stationId, missing);
    return missing.length;
  });
  return { through: page.stations.at(-1)?.stationId ?? sinceId, hasMore: page.hasMore, restored };
}

/** The open orders that the display shows, or will show when the shown one has ended. */
const shownOrders = ({ order, waitingOrders }: StationState): readonly ShownOrder[] =>
  order === null ? waitingOrders : [order, ...waitingOrders];

/** The orders that the station has as open, and the collection that it has as under way. */
function openWork(stationId: number, newest: NewestCommit | null): OpenWork {
  if (newest === null) return { stationId, version: 0, sequence: 0, orderIds: [], intentIds: [] };
  const { version, sequence, state } = newest;
  const { knownOrders, intent } = state;
  const open = knownOrders.filter(({ status }) => status === "open").map(({ orderId }) => orderId);
  const shown = shownOrders(state).map(({ orderId }) => orderId);
  const collected = intent === null ? [] : [intent.orderId];
  return {
    stationId,
    version,
    sequence,
    orderIds: [...new Set([...open, ...shown, ...collected])],
    intentIds: intent === null ? [] : [intent.intentId],
  };
}

/** The commands that bring the station to what PostgreSQL knows, in their order; none for a station that knows everything. */
function missingCommands(
  state: StationState | null,
  announced: AnnouncedStation,
  known: KnownOrders,
): MissingCommand[] {
  const { stationId, station } = announced;
  const registry: MissingCommand["command"][] = [];
  if (known.lost !== null) {
    // In one command with the description, because the station accepts no collection before it has this.
    registry.push({ type: "station_put", stationId, station, lost: known.lost });
  } else if (state === null || state.revision < station.revision) {
    registry.push({ type: "station_put", stationId, station });
  }
  for (const device of announced.devices) {
    const own = state?.devices.find((other) => other.deviceId === device.deviceId);
    const isGone = device.status === "revoked" && (state === null || state.revokedDevices.includes(device.deviceId));
    if (isGone || (own !== undefined && own.revision >= device.revision)) continue;
    registry.push({ type: "device_put", device });
  }
  const settlement: MissingCommand["command"][] = [
    // The payment first: while it is under way, it is what the display shows.
    ...known.sales.map((sale) => ({ type: "settlement_succeeded" as const, ...sale })),
    ...known.orders.filter((order) => !hasOrder(state, order)).map((order) => ({ type: "order_put" as const, order })),
  ];
  return [
    // A recovery is no act of the operator, whom `registry` means.
    ...registry.map((command) => ({ actor: { kind: "system", id: 0 } as const, command })),
    ...settlement.map((command) => ({ actor: { kind: "settlement", id: 0 } as const, command })),
  ];
}

function hasOrder(state: StationState | null, { orderId, revision, status }: OrderSnapshot): boolean {
  if (state === null) return false;
  const own = [...state.knownOrders, ...shownOrders(state)].find((other) => other.orderId === orderId);
  return own !== undefined && own.status === status && (status !== "open" || own.revision >= revision);
}

/** What a station does not take in time goes into the outbox, so that it does not delay the others. */
async function commandStation(
  deps: AnnounceDeps,
  stationId: number,
  missing: readonly MissingCommand[],
): Promise<void> {
  const { bus, sql, log } = deps;
  for (const [index, { actor, command }] of missing.entries()) {
    try {
      const request = { commandId: `announce:${randomUUID()}`, actor, command, isRestoring: true } as const;
      const { reply } = await askStation(bus.nc, stationId, request, { timeoutMs: RELAY_LIMITS.stationTimeoutMs });
      const facts = { stationId, type: command.type };
      if (!reply.ok) log.error({ ...facts, code: reply.code }, "a station refused an announcement");
    } catch (error) {
      const left = missing.slice(index);
      const failures = failuresOf(log, "a station did not take an announcement; the outbox will deliver it");
      failures.failed(error, { stationId, left: left.length });
      await sql.begin(async (tx) => {
        for (const row of left) {
          await insertOutbox(tx, { key: stationKey(stationId), kind: "station_command", stationId, ...row });
        }
      });
      return;
    }
  }
}

/** Does `work` for several things at once; returns the sum. Rejects with the first error, once all work has ended. */
async function sumAtOnce<T>(things: readonly T[], work: (thing: T) => Promise<number>): Promise<number> {
  const left = things.values();
  let sum = 0;
  const workOff = async (): Promise<void> => {
    for (const thing of left) {
      const part = await work(thing);
      sum += part;
    }
  };
  const workers = Array.from({ length: Math.min(RELAY_LIMITS.announcedAtOnce, things.length) }, workOff);
  for (const end of await Promise.allSettled(workers)) if (end.status === "rejected") throw end.reason;
  return sum;
}
