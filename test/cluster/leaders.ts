/** Reads and changes which server of a cluster leads a stream or has the consumers of its feeds. */
import { expect, vi } from "vitest";
import type { Bus } from "../../services/bus/connection.ts";
import { BUCKETS, STATEMENT_FILES, STREAMS, type StationLogs } from "../../services/bus/streams.ts";
import { type NatsCluster, NODES, type NodeName } from "./nats-cluster.ts";

/** How long a server that was away takes to copy what it has missed. */
const FOLLOWS = { timeout: 60_000, interval: 250 };
const WAIT = { timeout: 20_000, interval: 50 };
/** A cluster places each new consumer at random, and a feed replaces one in a second. Twenty seconds are sometimes too few. */
const MOVED = { timeout: 45_000, interval: 50 };

/** The streams and buckets of a bus with these logs. */
export const allStreams = ({ all }: Pick<StationLogs, "all">): readonly string[] => [
  ...[...all, ...STREAMS].map(({ name }) => name),
  ...BUCKETS.map(({ name }) => `KV_${name}`),
  `OBJ_${STATEMENT_FILES.name}`,
];

/** The stream's leader; undefined while the stream has no leader that answers. */
export async function leaderNow(bus: Bus, stream: string): Promise<NodeName | undefined> {
  const subject = `$JS.API.STREAM.INFO.${stream}`;
  const answer = await bus.nc.request(subject, "", { timeout: 1_000 }).catch(() => undefined);
  const leader = answer?.json<{ cluster?: { leader?: string } }>().cluster?.leader;
  return NODES.find((node) => node === leader);
}

/** Resolves when every copy of each stream follows its leader: a fault before that could cost a majority. */
export async function allFollow(bus: Bus, streams: readonly string[]): Promise<void> {
  await vi.waitFor(async () => {
    for (const name of streams) {
      const { cluster } = await bus.jsm.streams.info(name);
      const behind = cluster?.replicas?.find(({ current, offline }) => !current || offline);
      if (behind !== undefined) throw new Error(`The copy of ${name} at ${behind.name} does not follow.`);
    }
  }, FOLLOWS);
}

/** Makes this server the leader of these streams; resolves when it leads all of them. */
export async function moveLeaders(bus: Bus, node: NodeName, names: readonly string[]): Promise<void> {
  for (const name of names) {
    await vi.waitFor(async () => {
      const leader = await leaderNow(bus, name);
      if (leader === node) return;
      const request = JSON.stringify({ placement: { preferred: node } });
      await bus.nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${name}`, request, { timeout: 1_000 });
      throw new Error(`${name} is led by ${leader}`);
    }, WAIT);
  }
}

/** Moves the consumers of all feeds of this stream to this server. It deletes the others, and a feed replaces each of them. */
export async function moveConsumers(bus: Bus, node: NodeName, stream: string): Promise<void> {
  await vi.waitFor(async () => {
    const consumers = await bus.jsm.consumers.list(stream).next();
    const elsewhere = consumers.filter(({ cluster }) => cluster?.leader !== node);
    for (const { name } of elsewhere) await bus.jsm.consumers.delete(stream, name);
    expect([consumers.length > 0, elsewhere.length]).toEqual([true, 0]);
  }, MOVED);
}

/** The server that leads the cluster's metadata, and so decides which server gets a new consumer. */
export async function metaLeader(cluster: NatsCluster): Promise<NodeName> {
  const { meta_cluster } = await cluster.monitor<{ meta_cluster?: { leader?: string } }>("n0", "jsz");
  const leader = NODES.find((node) => node === meta_cluster?.leader);
  if (leader === undefined) throw new Error("The cluster has no leader.");
  return leader;
}
