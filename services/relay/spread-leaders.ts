/**
 * Spreads the leaders of the streams over the servers of the cluster, so that the death of one server stops the stations of
 * that server's logs alone (design §2.5). An election gives a stream to whichever server asks first, and a server that is back
 * leads nothing; so the relay that delivers moves leaders while all servers and all copies are there.
 *
 * While two servers are cut off from each other, neither leads: the other one would end its term again and again. The relay
 * moves their leaders before they elect, because a server that knows no leader of the cluster itself moves none.
 */
import type { StreamInfo } from "@nats-io/jetstream";
import { BUCKETS, STATEMENT_FILES, STREAMS } from "../bus/streams.ts";
import { type Repeated, repeat } from "../runtime/repeat.ts";
import type { RelayDeps } from "./deps.ts";
import { RELAY_LIMITS } from "./limits.ts";

type SpreadDeps = Pick<RelayDeps, "bus" | "log" | "logs"> & {
  readonly metrics: Pick<RelayDeps["metrics"], "movedLeader">;
};

const BUCKET_STREAMS = BUCKETS.map(({ name }) => `KV_${name}`);

export interface LedStream {
  readonly stream: string;
  readonly leader: string;
  /** All servers that have a copy. */
  readonly servers: readonly string[];
}

interface Move {
  readonly stream: string;
  readonly from: string;
  readonly to: string;
}

/** The moves after which leaders are spread evenly. */
export function movesToSpread(streams: readonly LedStream[]): Move[] {
  const move = nextMove(streams);
  if (move === undefined) return [];
  const after = streams.map((one) => (one.stream === move.stream ? { ...one, leader: move.to } : one));
  return [move, ...movesToSpread(after)];
}

function nextMove(streams: readonly LedStream[]): Move | undefined {
  const counts = new Map<string, number>();
  for (const { leader, servers } of streams) {
    for (const server of servers) counts.set(server, counts.get(server) ?? 0);
    counts.set(leader, (counts.get(leader) ?? 0) + 1);
  }
  const least = Math.min(...counts.values());
  const moves = streams.flatMap(({ stream, leader, servers }) => {
    const to = servers.find((server) => counts.get(server) === least);
    const isUneven = (counts.get(leader) ?? 0) - least > 1;
    return to === undefined || !isUneven ? [] : [{ stream, from: leader, to }];
  });
  const load = ({ from }: Move): number => counts.get(from) ?? 0;
  return moves.toSorted((one, other) => load(other) - load(one))[0];
}

/** Undefined when the leader is not cut off from another server, or each server with a copy is. */
export function moveFromCut({ stream, leader, servers }: LedStream, cutOff: ReadonlySet<string>): Move | undefined {
  const to = cutOff.has(leader) ? servers.find((server) => !cutOff.has(server)) : undefined;
  return to === undefined ? undefined : { stream, from: leader, to };
}

/** Moves leaders until it is stopped. */
export function startSpreading(deps: SpreadDeps): Repeated {
  const { log, logs } = deps;
  const groups = [
    logs.all.map(({ name }) => name),
    // Each process checks by them whether its server reaches a majority (`quorum.ts`): one server must not lead them all.
    BUCKET_STREAMS,
  ];
  /** The moves that the previous turn found. Only moves found twice are made, because an election may be under way. */
  let before = "";
  const stopWatching = deps.bus.watchLinks();
  const leaving = repeat({ everyMs: RELAY_LIMITS.leaveCutMs, what: "leaving servers that are cut off", log }, () =>
    leaveCutOff(deps),
  );
  const spreading = repeat(
    { everyMs: RELAY_LIMITS.spreadMs, what: "spreading the leaders of the streams", log },
    async () => {
      if (deps.bus.nc.info?.cluster === undefined || deps.bus.cutOff().size > 0) return;
      const moves = (await Promise.all(groups.map((group) => findMoves(deps, group)))).flat();
      const found = JSON.stringify(moves);
      if (found === before) for (const move of moves) await makeMove(deps, move);
      before = found;
    },
  );
  return {
    async stop() {
      stopWatching();
      await Promise.all([leaving.stop(), spreading.stop()]);
    },
  };
}

/** All at once: a stream whose leader does not answer must not delay the others. */
async function leaveCutOff(deps: SpreadDeps): Promise<void> {
  const { bus, logs } = deps;
  const cutOff = bus.cutOff();
  // A process at a server that is cut off leaves it first: it does not reach all leaders.
  if (cutOff.size === 0 || !bus.isUp() || cutOff.has(bus.nc.info?.server_name ?? "")) return;
  const names = [
    ...[...logs.all, ...STREAMS].map(({ name }) => name),
    ...BUCKET_STREAMS,
    `OBJ_${STATEMENT_FILES.name}`,
  ];
  await Promise.allSettled(
    names.map(async (name) => {
      const answer = await bus.nc.request(`$JS.API.STREAM.INFO.${name}`, "", { timeout: RELAY_LIMITS.askLeaderMs });
      const { cluster } = answer.json<StreamInfo>();
      const { leader, replicas = [] } = cluster ?? {};
      if (leader === undefined) return;
      const move = moveFromCut({ stream: name, leader, servers: replicas.map((copy) => copy.name) }, cutOff);
      if (move !== undefined) await makeMove(deps, move);
    }),
  );
}

/** None while a server is away or a copy is not complete. */
async function findMoves({ bus }: SpreadDeps, names: readonly string[]): Promise<Move[]> {
  const led: LedStream[] = [];
  for (const name of names) {
    const stream = ledStream(await bus.jsm.streams.info(name));
    if (stream === undefined) return [];
    led.push(stream);
  }
  return movesToSpread(led);
}

function ledStream({ config, cluster }: StreamInfo): LedStream | undefined {
  const { leader, replicas = [] } = cluster ?? {};
  const isComplete = replicas.length > 0 && replicas.every(({ current, offline }) => current && !offline);
  if (leader === undefined || leader === "" || !isComplete) return undefined;
  return { stream: config.name, leader, servers: [leader, ...replicas.map(({ name }) => name)].toSorted() };
}

async function makeMove({ bus, log, metrics }: SpreadDeps, { stream, from, to }: Move): Promise<void> {
  const request = JSON.stringify({ placement: { preferred: to } });
  const subject = `$JS.API.STREAM.LEADER.STEPDOWN.${stream}`;
  const answer = await bus.nc.request(subject, request, { timeout: RELAY_LIMITS.stepDownMs });
  const { error } = answer.json<{ readonly error?: { readonly description?: string } }>();
  if (error !== undefined) throw new Error(`The leader of ${stream} stays: ${error.description}.`);
  metrics.movedLeader();
  log.info({ stream, from, to }, "the relay moves the leader of a stream");
}
