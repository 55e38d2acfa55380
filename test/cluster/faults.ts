/** What happens to the cluster, one fault after another, drawn from a seed. Each is ended before the next one begins. */

import { setTimeout as delay } from "node:timers/promises";
import { LEASES } from "../../services/bus/streams.ts";
import type { Random } from "../chaos/random.ts";
import { STATION_LOG } from "../support/one-log.ts";
import { type ClusterWorld, KINDS, type Kind, type ProcessName } from "./cluster-world.ts";
import { NODES, type NodeName } from "./nats-cluster.ts";

export interface Fault {
  /** Faults of one name have one bound. */
  readonly name: string;
  /** The server or the process. */
  readonly target: string;
  /** Resolves when everything runs and is joined again. */
  run(): Promise<void>;
}

type Draw = (world: ClusterWorld, random: Random) => Promise<Fault>;

const STALL_MS = 10_000;
const PARTITION_MS = 20_000;
const PROCESS_STALL_MS = 4_000;
/** How long a killed server or process stays away. */
const DOWN_MS = 3_000;

const LEADERS = { log: STATION_LOG.name, lease: `KV_${LEASES.name}` } as const;

/** Which server leads the stream now. */
export async function leaderOf(world: ClusterWorld, stream: string): Promise<NodeName> {
  const { cluster } = await world.bus.jsm.streams.info(stream);
  const leader = NODES.find((node) => node === cluster?.leader);
  if (leader === undefined) throw new Error(`The stream ${stream} has no leader.`);
  return leader;
}

async function followerOf(world: ClusterWorld, random: Random): Promise<NodeName> {
  const leader = await leaderOf(world, STATION_LOG.name);
  return random.pick(NODES.filter((node) => node !== leader));
}

const killLeader =
  (which: keyof typeof LEADERS): Draw =>
  async (world) => {
    const node = await leaderOf(world, LEADERS[which]);
    return {
      name: `kill the leader of the ${which}`,
      target: node,
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
    return {
      name: `stall a ${role}`,
      target: node,
      async run() {
        world.nats.signalNode(node, "SIGSTOP");
        await delay(STALL_MS);
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
    async run() {
      await world.nats.stopNode(node);
      await delay(DOWN_MS);
      await world.nats.startNode(node);
    },
  };
};

function onProcess(verb: "kill" | "stall" | "stop", kind: Kind): Draw {
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
    return { name: `${verb} a process of ${kind}`, target: name, run: ways[verb] };
  };
}

const VERBS = ["kill", "stall", "stop"] as const;

/** The faults of servers: half of all that are drawn. */
const OF_SERVERS: readonly Draw[] = [
  killLeader("log"),
  killLeader("lease"),
  stallNode("leader"),
  stallNode("follower"),
  isolateNode("leader"),
  isolateNode("follower"),
  cutPair,
  stopNode,
];
const OF_PROCESSES: readonly Draw[] = KINDS.flatMap((kind) => VERBS.map((verb) => onProcess(verb, kind)));

/** So many faults, in an order that the seed decides: each kind of both halves comes up before one is repeated. */
export function drawFaults(count: number, random: Random): readonly Draw[] {
  const decks = [deck(OF_SERVERS, random), deck(OF_PROCESSES, random)] as const;
  return Array.from({ length: count }, (_, index) => decks[index % 2 === 0 ? 0 : 1]());
}

function deck(draws: readonly Draw[], random: Random): () => Draw {
  let left: Draw[] = [];
  return () => {
    if (left.length === 0) left = random.shuffled(draws);
    return left.pop() as Draw;
  };
}
