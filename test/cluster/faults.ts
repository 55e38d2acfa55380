/** The faults of a trial. A seed decides their order, and each fault ends before the next one begins. */

import { setTimeout as delay } from "node:timers/promises";
import { CREDENTIALS } from "../../services/bus/streams.ts";
import type { Random } from "../chaos/random.ts";
import { STATION_LOG } from "../support/one-log.ts";
import type { ClusterWorld, Kind, ProcessName } from "./cluster-world.ts";
import { allStreams, leaderNow, moveLeaders } from "./leaders.ts";
import { NODES, type NodeName } from "./nats-cluster.ts";

export interface Fault {
  /** Faults with the same name have the same bound. */
  readonly name: string;
  /** The server or process that the fault is about. */
  readonly target: string;
  /** The longest time without success and the slowest answer for a client (docs/operations.md, "When something fails"). */
  readonly withinMs: number;
  /** The longest wait of an entry for its audit copy; five seconds more than `withinMs` unless the fault says so. */
  readonly copyWithinMs?: number;
  /**
   * What it does to collections by QR. `may_end`: one may end unpaid, because the provider is not reached in time, or be paid
   * late. `may_be_late`: all are paid, with some delay. Left out: neither.
   */
  readonly qrs?: "may_end" | "may_be_late" | undefined;
  /** Whether no attempt of a request may fail, because other processes answer at once. */
  readonly failsNothing?: boolean;
  /** Whether the fault is the death of one server: then at most 40 % of the stations may have a gap. */
  readonly isDeath?: boolean;
  /** The bound until the target works again, if it is shorter than the bound of the whole fault. */
  readonly untilAwakeWithinMs?: number;
  /** Resolves when all processes run and all links are joined again. Calls `onAwake` as soon as the target works again. */
  run(onAwake: () => void): Promise<void>;
}

export type Draw = (world: ClusterWorld, random: Random) => Promise<Fault>;

const STALL_MS = 10_000;
export const PARTITION_MS = 20_000;
const PROCESS_STALL_MS = 4_000;
/** How long a killed server or process stays away. */
export const DOWN_MS = 3_000;

/** How long a draw waits for a leader: long enough for several elections. */
const ELECTED_WITHIN_MS = 60_000;
const POLL_MS = 200;

/** An election of NATS, which takes 4 to 9 s, and the work after it. */
export const ELECTION_MS = 12_000;
/**
 * A NATS server starts an election without a check whether the others still receive from the leader. So a follower that
 * continues after a stall ends the terms of all leaders. `majority.test.ts` tests the stall alone. docs/operations.md has the
 * reason.
 */
const FOLLOWER_MS = ELECTION_MS;
/** The bound while the follower is stalled: in this time the processes that are connected to it leave it. */
const FOLLOWER_AWAY_MS = 2_000;
/**
 * Two servers without a connection to each other end each other's terms, until the third one leads. The processes at these two
 * connect to the third one (server-links.ts), because no message passes between the two.
 */
export const PAIR_MS = ELECTION_MS;
export const STOPPED_SERVER_MS = 1_000;
const OF_PROCESS_MS = { kill: 1_500, stall: 3_000, stop: 500 } as const;
/** Another actor host takes over when the lease has lapsed. */
const OF_HOST_MS = { kill: 3_000, stall: 3_000, stop: 500 } as const;
/** The clients act as the load balancer here: this includes the time after which they leave a gateway. */
const OF_GATEWAY_MS = { kill: 4_000, stall: PROCESS_STALL_MS + 4_000, stop: 500 } as const;

/** How often the relay may move a leader back at the moment of the stall. */
const STALL_TRIES = 20;

const LEADERS = { log: STATION_LOG.name, credentials: `KV_${CREDENTIALS.name}` } as const;

/** The server that leads the stream. Waits while an election is under way. */
export async function leaderOf(world: ClusterWorld, stream: string): Promise<NodeName> {
  const deadlineMs = performance.now() + ELECTED_WITHIN_MS;
  for (;;) {
    const leader = await leaderNow(world.bus, stream);
    if (leader !== undefined) return leader;
    if (performance.now() > deadlineMs) throw new Error(`The stream ${stream} has no leader.`);
    await delay(POLL_MS);
  }
}

export async function followerOf(world: ClusterWorld, random: Random): Promise<NodeName> {
  const leader = await leaderOf(world, STATION_LOG.name);
  return random.pick(NODES.filter((node) => node !== leader));
}

/**
 * Stalls a server that leads nothing, because the stall of a leader causes an election. Every server leads some streams, so this
 * function first moves them to the other servers, all at once. The relay may move some back within two seconds. Then this
 * function begins again.
 */
async function stallFollower({ nats, bus, logs }: ClusterWorld, node: NodeName): Promise<void> {
  const others = NODES.filter((one) => one !== node);
  for (let tries = 0; tries < STALL_TRIES; tries += 1) {
    const moving = allStreams(logs).map(async (name, index) => {
      if ((await leaderNow(bus, name)) === node)
        await moveLeaders(bus, others[index % others.length] as NodeName, [name]);
    });
    await Promise.all(moving);
    nats.signalNode(node, "SIGSTOP");
    const leaders = await nats.leadersKnownAt(others[0] as NodeName);
    if (leaders.length > 0 && leaders.every((leader) => others.includes(leader as NodeName))) return;
    nats.signalNode(node, "SIGCONT");
  }
  throw new Error(`After ${STALL_TRIES} tries ${node} still leads a stream.`);
}

const killLeader =
  (which: keyof typeof LEADERS): Draw =>
  async (world) => {
    const node = await leaderOf(world, LEADERS[which]);
    return {
      name: `kill the leader of the ${which}`,
      target: node,
      withinMs: ELECTION_MS,
      isDeath: true,
      async run() {
        await world.nats.killNode(node);
        await delay(DOWN_MS);
        await world.nats.startNode(node);
      },
    };
  };

const stallNode =
  (role: "leader" | "follower"): Draw =>
  async (world, random) => {
    const node = role === "leader" ? await leaderOf(world, STATION_LOG.name) : await followerOf(world, random);
    if (role === "follower") await stallFollower(world, node);
    return {
      name: `stall a ${role}`,
      target: node,
      withinMs: role === "leader" ? ELECTION_MS : FOLLOWER_MS,
      ...(role === "leader" ? {} : { untilAwakeWithinMs: FOLLOWER_AWAY_MS }),
      async run(onAwake) {
        if (role === "leader") world.nats.signalNode(node, "SIGSTOP");
        await delay(STALL_MS);
        onAwake();
        world.nats.signalNode(node, "SIGCONT");
      },
    };
  };

const isolateNode =
  (role: "leader" | "follower"): Draw =>
  async (world, random) => {
    const node = role === "leader" ? await leaderOf(world, STATION_LOG.name) : await followerOf(world, random);
    return {
      name: `isolate a ${role}`,
      target: node,
      withinMs: ELECTION_MS,
      async run() {
        world.nats.isolate(node);
        await delay(PARTITION_MS);
        world.nats.reunite(node);
      },
    };
  };

const cutPair: Draw = async (world, random) => {
  const [one, other] = random.shuffled(NODES) as [NodeName, NodeName, NodeName];
  return {
    name: "cut one pair of servers",
    target: `${one} and ${other}`,
    withinMs: PAIR_MS,
    async run() {
      world.nats.cut(one, other);
      await delay(PARTITION_MS);
      world.nats.join(one, other);
    },
  };
};

const stopNode: Draw = async (world, random) => {
  const node = random.pick(NODES);
  return {
    name: "stop a server in good order",
    target: node,
    withinMs: STOPPED_SERVER_MS,
    async run() {
      await world.nats.stopNode(node);
      await delay(DOWN_MS);
      await world.nats.startNode(node);
    },
  };
};

export const limitsOf = (kind: Kind) =>
  kind === "gateway" ? OF_GATEWAY_MS : kind === "stations" ? OF_HOST_MS : OF_PROCESS_MS;

export const withinOfStop = (kind: Kind): number => limitsOf(kind).stop;

/** The fault of a server, of PostgreSQL or of several processes: a request to the provider may fail, and its answer may be lost. */
export const endsQrs =
  (draw: Draw): Draw =>
  async (world, random) => ({ ...(await draw(world, random)), qrs: "may_end" });

/** What the failure of a process does to collections by QR: only these two kinds take part in the call to the provider. */
export const qrsOf = (kind: Kind): Fault["qrs"] =>
  kind === "providers" || kind === "sandbox-provider" ? "may_end" : undefined;

/** `providers` ends its calls before it stops. The provider itself is an outside party, and has one address for each caller. */
export const qrsOfStop = (kind: Kind): Fault["qrs"] => (kind === "providers" ? "may_be_late" : qrsOf(kind));

export function onProcess(verb: "kill" | "stall" | "stop", kind: Kind): Draw {
  return async (world, random) => {
    const name: ProcessName = `${kind}-${random.chance(0.5) ? 0 : 1}`;
    const target = world.processes.get(name);
    if (target === undefined) throw new Error(`There is no process ${name}.`);
    const ways = {
      async kill() {
        await target.kill9();
        await delay(DOWN_MS);
        await target.restart();
      },
      async stall() {
        process.kill(target.pid(), "SIGSTOP");
        await delay(PROCESS_STALL_MS);
        process.kill(target.pid(), "SIGCONT");
      },
      async stop() {
        await target.stop();
        await delay(DOWN_MS);
        await target.restart();
      },
    };
    // The connections of a gateway end with it.
    const failsNothing = verb === "stop" && kind !== "gateway";
    const withinMs = limitsOf(kind)[verb];
    const qrs = verb === "stop" ? qrsOfStop(kind) : qrsOf(kind);
    return { name: `${verb} a process of ${kind}`, target: name, withinMs, failsNothing, qrs, run: ways[verb] };
  };
}

export const VERBS = ["kill", "stall", "stop"] as const;

/** The faults of servers: by default half of all faults that are drawn. */
export const OF_SERVERS: readonly Draw[] = [
  killLeader("log"),
  killLeader("credentials"),
  stallNode("leader"),
  stallNode("follower"),
  isolateNode("leader"),
  isolateNode("follower"),
  cutPair,
  stopNode,
].map(endsQrs);
export const ofProcesses = (kinds: readonly Kind[]): readonly Draw[] =>
  kinds.flatMap((kind) => VERBS.map((verb) => onProcess(verb, kind)));
