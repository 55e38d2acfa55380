/** Rare faults: networks that lose one direction or are slow, lost disks, faults of PostgreSQL, and two faults at once. */

import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import { CREDENTIALS, SESSIONS, SWITCHES } from "../../services/bus/streams.ts";
import { errorCode } from "../../services/runtime/user-error.ts";
import type { Random } from "../chaos/random.ts";
import { STATION_LOG } from "../support/one-log.ts";
import type { TestProcess } from "../support/test-process.ts";
import { COPIED_WITHIN_MS } from "./audit-copy-watch.ts";
import { type ClusterWorld, FILLED_NODE, KINDS, type Kind, LINKED_COPY, type ProcessName } from "./cluster-world.ts";
import {
  DOWN_MS,
  type Draw,
  ELECTION_MS,
  endsQrs,
  followerOf,
  leaderOf,
  limitsOf,
  OF_SERVERS,
  ofProcesses,
  PAIR_MS,
  PARTITION_MS,
  qrsOf,
  STOPPED_SERVER_MS,
} from "./faults.ts";
import { allStreams, metaLeader, moveLeaders } from "./leaders.ts";
import { NODES, type NodeName } from "./nats-cluster.ts";

/** Longer than a message between two continents takes, and shorter than any timeout of NATS for a server. */
const SLOW_MS = 150;
const CUT_MS = 10_000;
const FULL_MS = 20_000;
const FLAPS = 6;
const FLAP_MS = 1_500;
/** Ahead, back, and right again (`programs/set-clock.mjs`). */
const CLOCK_SETTINGS = 3;
/** An attestation takes several statements, one after the other. */
const SLOW_DATABASE_MS = 5_000;
const RESETS = 3;
/** Processes and servers dial again within a second, and hosts read what they have missed. */
const RESET_MS = 3_000;
/** At most one attempt fails, and the client repeats it at once. */
const NOTHING_MS = 1_500;
const SERVERS_START_MS = 3_000;
/** All processes start at once on two cores. */
const PROCESSES_START_MS = 20_000;
/** During the fault no process of the kind runs. Then both start, and the lease of a host must lapse first. */
const NO_COPY_MS = CUT_MS + 6_000;
const DATABASE_STALL_MS = 6_000;
/** The bound after the end of a stall or a restart of PostgreSQL. */
const DATABASE_BACK_MS = 2_000;
/** A feed misses its heartbeats, and starts over. */
const CONSUMERS_MS = 3_000;
/** From the SIGTERM of one process to that of the next one. */
const NEXT_STOP_MS = 100;
/** A host that is killed during its stop leaves a lease, which lapses after this time. */
const LEASE_MS = 3_000;
/** `RestartSec` of the units. */
const SUPERVISOR_MS = 1_000;
/** The next leading relay restores the buckets, and a starting gateway waits for that. */
const PURGED_MS = LEASE_MS;
/** In this time a station of a trial opens more than the eight orders that it stores. */
const LOCKED_MS = 20_000;
/** NATS answers when another server leads. */
const STEP_DOWN_MS = 10_000;

const loseOneDirection =
  (of: "from" | "to"): Draw =>
  async (world, random) => {
    const node = await leaderOf(world, STATION_LOG.name);
    const other = random.pick(NODES.filter((one) => one !== node));
    const [from, to] = of === "from" ? [node, other] : [other, node];
    return {
      name: `lose what a leader ${of === "from" ? "sends to" : "receives from"} one server`,
      target: `${from} to ${to}`,
      withinMs: PAIR_MS,
      async run() {
        world.nats.cutOneWay(from, to);
        await delay(PARTITION_MS);
        world.nats.join(from, to);
      },
    };
  };

const slowServer =
  (role: "leader" | "follower"): Draw =>
  async (world, random) => {
    const node = role === "leader" ? await leaderOf(world, STATION_LOG.name) : await followerOf(world, random);
    return {
      name: `slow links of a ${role}`,
      target: node,
      withinMs: ELECTION_MS,
      async run() {
        world.nats.slow(node, SLOW_MS);
        await delay(PARTITION_MS);
        world.nats.reunite(node);
      },
    };
  };

const flappingServer: Draw = async (world) => {
  const node = await leaderOf(world, STATION_LOG.name);
  return {
    name: "isolate a leader again and again",
    target: node,
    withinMs: FLAPS * 2 * FLAP_MS + ELECTION_MS,
    async run() {
      for (let nth = 0; nth < FLAPS; nth += 1) {
        world.nats.isolate(node);
        await delay(FLAP_MS);
        world.nats.reunite(node);
        await delay(FLAP_MS);
      }
    },
  };
};

const loseDisk =
  (role: "leader" | "follower"): Draw =>
  async (world, random) => {
    const node = role === "leader" ? await leaderOf(world, STATION_LOG.name) : await followerOf(world, random);
    return {
      name: `lose the disk of a ${role}`,
      target: node,
      withinMs: ELECTION_MS,
      isDeath: true,
      async run() {
        await world.nats.killNode(node);
        world.nats.emptyDisk(node);
        await delay(DOWN_MS);
        await world.nats.startNode(node);
      },
    };
  };

/** A server that finds no space stores nothing until it is started again with space, as an operator does. */
const fillDisk: Draw = async (world) => {
  await moveLeaders(world.bus, FILLED_NODE, [STATION_LOG.name]);
  return {
    name: "fill the disk of a leader",
    target: FILLED_NODE,
    withinMs: ELECTION_MS,
    async run() {
      world.disk.fill(0);
      await delay(FULL_MS);
      world.disk.empty();
      await world.nats.killNode(FILLED_NODE);
      await world.nats.startNode(FILLED_NODE);
    },
  };
};

/** One process loses its server, which works for all others. */
const cutProcess =
  (kind: Kind): Draw =>
  async (world) => {
    const name: ProcessName = `${kind}-${LINKED_COPY}`;
    const links = world.nats.linksOf(name);
    return {
      name: `cut a process of ${kind} from its server`,
      target: name,
      withinMs: limitsOf(kind).stall,
      async run() {
        const used = [...links.values()].filter(({ connections }) => connections > 0);
        for (const link of used) link.cut();
        await delay(CUT_MS);
        for (const link of used) link.join();
      },
    };
  };

/** One process loses PostgreSQL without an error: it gets no answers, and no connection ends. */
const cutFromDatabase =
  (kind: Kind): Draw =>
  async (world) => {
    const name: ProcessName = `${kind}-${LINKED_COPY}`;
    return {
      name: `cut a process of ${kind} from PostgreSQL`,
      target: name,
      withinMs: limitsOf(kind).stall,
      async run() {
        const link = world.databaseLinkOf(name);
        link.cut();
        await delay(CUT_MS);
        link.join();
      },
    };
  };

/** The link to PostgreSQL is as slow as a link between two continents: each statement waits for it twice. */
const slowToDatabase =
  (kind: Kind): Draw =>
  async (world) => {
    const name: ProcessName = `${kind}-${LINKED_COPY}`;
    return {
      name: `slow the link of a process of ${kind} to PostgreSQL`,
      target: name,
      withinMs: SLOW_DATABASE_MS,
      async run() {
        const link = world.databaseLinkOf(name);
        link.slow(SLOW_MS);
        await delay(PARTITION_MS);
        link.join();
      },
    };
  };

/** Breaks all connections, as a restarted switch or firewall does. No server and no process ends. */
const resetConnections: Draw = async (world) => ({
  name: "end every connection of the servers and of one process of each kind",
  target: "all links",
  withinMs: RESET_MS,
  async run() {
    const names = world.kinds.map((kind): ProcessName => `${kind}-${LINKED_COPY}`);
    for (let nth = 0; nth < RESETS; nth += 1) {
      world.nats.resetLinks();
      for (const name of names) {
        world.databaseLinkOf(name).reset();
        for (const link of world.nats.linksOf(name).values()) link.reset();
      }
      await delay(FLAP_MS * 2);
    }
  },
});

/** The loss of a machine with a NATS server and one process of each kind: all of them lose power or network together. */
const loseMachine =
  (how: "kill" | "cut off"): Draw =>
  async (world, random) => {
    const node = random.pick(NODES);
    const names = world.kinds.map((kind): ProcessName => `${kind}-${LINKED_COPY}`);
    const processes = names.flatMap((name) => world.processes.get(name) ?? []);
    return {
      name: `${how} a machine with a server and one process of each kind`,
      target: node,
      withinMs: ELECTION_MS,
      async run() {
        if (how === "kill") {
          await Promise.all([...processes.map((each) => each.kill9()), world.nats.killNode(node)]);
          await delay(DOWN_MS);
          await world.nats.startNode(node);
          await Promise.all(processes.map(restartAsSupervisor));
        } else {
          // Within the machine all parts still reach one another.
          const toOthers = names.flatMap((name) =>
            [...world.nats.linksOf(name)].flatMap(([to, link]) => (to === node ? [] : [link])),
          );
          const links = [...toOthers, ...names.map((name) => world.databaseLinkOf(name))];
          world.nats.isolate(node);
          for (const link of links) link.cut();
          await delay(PARTITION_MS);
          world.nats.reunite(node);
          for (const link of links) link.join();
        }
      },
    };
  };

/** An operator's mistake (`nats stream purge`). Processes that start afterwards find what the relay has restored. */
const purgeBuckets: Draw = async (world) => ({
  name: "purge the buckets of credentials, sessions and switches, and restart relays and gateways",
  target: "one after another",
  withinMs: PURGED_MS,
  async run() {
    for (const { name } of [CREDENTIALS, SESSIONS, SWITCHES]) await world.bus.jsm.streams.purge(`KV_${name}`);
    for (const kind of ["relay", "gateway"] as const) {
      for (const copy of [0, 1] as const) {
        const each = world.processes.get(`${kind}-${copy}`);
        await each?.stop();
        await each?.restart();
      }
    }
  },
});

/** Long enough for the process to miss its deadlines, and too short for other processes to notice. */
const BRIEFLY = { name: "briefly", leastMs: 500, mostMs: 3_000 };
/** For kinds of processes that no collection waits for: the other process continues the work, and this one loses its leases. */
const FOR_MINUTE = { name: "for a minute", leastMs: 60_000, mostMs: 61_000 };

const stallProcess =
  (kind: Kind, { name: length, leastMs, mostMs }: typeof BRIEFLY): Draw =>
  async (world, random) => {
    const name: ProcessName = `${kind}-${random.chance(0.5) ? 0 : 1}`;
    const target = world.processes.get(name);
    if (target === undefined) throw new Error(`There is no process ${name}.`);
    const stallMs = random.between(leastMs, mostMs);
    return {
      name: `stall a process of ${kind} ${length}`,
      target: `${name}, ${stallMs} ms`,
      withinMs: limitsOf(kind).stall,
      qrs: qrsOf(kind),
      async run() {
        process.kill(target.pid(), "SIGSTOP");
        await delay(stallMs);
        process.kill(target.pid(), "SIGCONT");
      },
    };
  };

/** An operator's mistake: every process stops receiving one log, without an error. */
const deleteConsumers: Draw = async (world, random) => {
  const { name: stream } = random.pick(world.logs.all);
  return {
    name: "delete the consumers of a log",
    target: stream,
    withinMs: CONSUMERS_MS,
    async run() {
      const names: string[] = [];
      for await (const consumer of world.bus.jsm.consumers.list(stream)) names.push(consumer.name);
      await Promise.all(names.map((name) => world.bus.jsm.consumers.delete(stream, name)));
    },
  };
};

/** Kills the leader of the metadata, which assigns consumers to servers: until the next election no feed can start over. */
const killMetaLeader: Draw = async (world) => {
  const node = await metaLeader(world.nats);
  return {
    name: "kill the leader of the metadata",
    target: node,
    withinMs: ELECTION_MS,
    async run() {
      await world.nats.killNode(node);
      await delay(DOWN_MS);
      await world.nats.startNode(node);
    },
  };
};

const stallServerBriefly: Draw = async (world, random) => {
  const node = await leaderOf(world, STATION_LOG.name);
  const stallMs = random.between(500, 3_500);
  return {
    name: "stall a leader briefly",
    target: `${node}, ${stallMs} ms`,
    withinMs: ELECTION_MS,
    async run() {
      world.nats.signalNode(node, "SIGSTOP");
      await delay(stallMs);
      world.nats.signalNode(node, "SIGCONT");
    },
  };
};

/** Sends SIGTERM, and SIGKILL while the process hands over. */
const killDuringHandOver =
  (kind: Kind): Draw =>
  async (world, random) => {
    const name: ProcessName = `${kind}-${random.chance(0.5) ? 0 : 1}`;
    const target = world.processes.get(name);
    if (target === undefined) throw new Error(`There is no process ${name}.`);
    const afterMs = random.between(1, 200);
    return {
      name: `kill a process of ${kind} that ends`,
      target: `${name}, after ${afterMs} ms`,
      withinMs: limitsOf(kind).kill,
      async run() {
        const stopped = target.stop();
        await delay(afterMs);
        await target.kill9();
        await stopped;
        await delay(DOWN_MS);
        await target.restart();
      },
    };
  };

const stallDatabase: Draw = async (world) => ({
  name: "stall PostgreSQL",
  target: "postgres",
  withinMs: DATABASE_STALL_MS + DATABASE_BACK_MS,
  async run() {
    world.postgres.signalAll("SIGSTOP");
    await delay(DATABASE_STALL_MS);
    world.postgres.signalAll("SIGCONT");
  },
});

const killDatabase: Draw = async (world) => ({
  name: "kill PostgreSQL",
  target: "postgres",
  withinMs: DOWN_MS + 3 * DATABASE_BACK_MS,
  async run() {
    await world.postgres.kill9();
    await delay(DOWN_MS);
    await world.postgres.restart();
  },
});

/** PostgreSQL's fast shutdown and an immediate start, as after a change of its settings. */
const restartDatabase: Draw = async (world) => ({
  name: "restart PostgreSQL in good order",
  target: "postgres",
  withinMs: 3 * DATABASE_BACK_MS,
  async run() {
    await world.postgres.halt();
    await world.postgres.restart();
  },
});

/**
 * Locks the table like an operator's `alter table` or `vacuum full`. No relay delivers meanwhile. Afterwards the relays deliver
 * old news to each station, about more orders than a station stores.
 */
const lockRelays: Draw = async (world) => ({
  name: "lock the table of the relays' lease",
  target: "relay_lease",
  withinMs: NOTHING_MS,
  async run() {
    const sql = postgres(world.postgres.url, { max: 1, max_lifetime: null, onnotice: () => undefined });
    await sql.begin(async (tx) => {
      await tx`lock table relay_lease in access exclusive mode`;
      await delay(LOCKED_MS);
    });
    await sql.end();
  },
});

/** Starts the process, and again a second after each start that ends without its server (docs/operations.md, "Start order"). */
async function restartAsSupervisor(each: TestProcess): Promise<void> {
  for (;;) {
    try {
      return await each.restart();
    } catch (error) {
      if (errorCode(error) !== "bus_down") throw error;
      await delay(SUPERVISOR_MS);
    }
  }
}

/** A careless deployment: all processes stop at once, and each starts again as soon as it has ended. */
const replaceAllAtOnce: Draw = async (world, random) => ({
  name: "stop and start all processes without waiting",
  target: "all processes",
  withinMs: PROCESSES_START_MS + LEASE_MS,
  async run() {
    const processes = random.shuffled([...world.processes.values()]);
    await Promise.all(
      processes.map(async (each, nth) => {
        await delay(nth * NEXT_STOP_MS);
        await each.stop();
        await restartAsSupervisor(each);
      }),
    );
  },
});

/** Makes the leader of one stream after another step down, as an operator does with `nats stream cluster step-down`. */
const stepDownLeaders: Draw = async (world, random) => ({
  name: "have every leader step down",
  target: "all streams and buckets",
  withinMs: STOPPED_SERVER_MS,
  async run() {
    for (const name of random.shuffled(allStreams(world.logs))) {
      const answer = await world.bus.nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${name}`, "", {
        timeout: STEP_DOWN_MS,
      });
      const { success } = answer.json<{ success?: boolean }>();
      if (success !== true) throw new Error(`${name}: ${answer.string()}`);
    }
  },
});

/** Kills both processes of a service. Unless `withinMs` is set, no request of a trial needs this service. */
const killBoth =
  (kind: Kind, withinMs = NOTHING_MS): Draw =>
  async (world) => {
    const copies = ([0, 1] as const).flatMap((copy) => world.processes.get(`${kind}-${copy}`) ?? []);
    return {
      name: `kill both processes of ${kind}`,
      target: kind,
      withinMs,
      qrs: qrsOf(kind),
      copyWithinMs: NO_COPY_MS + COPIED_WITHIN_MS,
      async run() {
        await Promise.all(copies.map((each) => each.kill9()));
        await delay(CUT_MS);
        await Promise.all(copies.map((each) => each.restart()));
      },
    };
  };

const killTwoServers: Draw = async (world, random) => {
  const [one, other] = random.shuffled(NODES) as [NodeName, NodeName, NodeName];
  return {
    name: "kill two servers",
    target: `${one} and ${other}`,
    withinMs: CUT_MS + SERVERS_START_MS + ELECTION_MS,
    async run() {
      await Promise.all([world.nats.killNode(one), world.nats.killNode(other)]);
      await delay(CUT_MS);
      await Promise.all([world.nats.startNode(one), world.nats.startNode(other)]);
    },
  };
};

/** A power cut: every process, every server and PostgreSQL die at once, and start again in any order. */
const killEverything: Draw = async (world) => ({
  name: "kill everything",
  target: "processes, servers and PostgreSQL",
  withinMs: DOWN_MS + PROCESSES_START_MS + ELECTION_MS,
  async run() {
    const processes = [...world.processes.values()];
    await Promise.all([
      ...processes.map((each) => each.kill9()),
      ...NODES.map((node) => world.nats.killNode(node)),
      world.postgres.kill9(),
    ]);
    await delay(DOWN_MS);
    await Promise.all([
      ...NODES.map((node) => world.nats.startNode(node)),
      world.postgres.restart(),
      ...processes.map((each) => restartAsSupervisor(each)),
    ]);
  },
});

/** Sets the clock of one process of each kind an hour ahead, then an hour back. */
const setClocks: Draw = async (world) => ({
  name: "set the clock of one process of each kind",
  target: "an hour ahead, then back",
  withinMs: NOTHING_MS,
  async run() {
    for (let nth = 0; nth < CLOCK_SETTINGS; nth += 1) {
      for (const kind of world.kinds)
        process.kill(world.processes.get(`${kind}-${LINKED_COPY}`)?.pid() ?? 0, "SIGUSR2");
      await delay(FLAP_MS * 2);
    }
  },
});

/** Two faults at once: one of a server and one of a process, which are drawn independently of each other. */
const twoAtOnce: Draw = async (world: ClusterWorld, random: Random) => {
  const one = await random.pick(OF_SERVERS)(world, random);
  const other = await random.pick(ofProcesses(world.kinds))(world, random);
  return {
    name: `${one.name}, and ${other.name}`,
    target: `${one.target}, ${other.target}`,
    withinMs: one.withinMs + other.withinMs,
    async run() {
      await Promise.all([one, other].map((each) => each.run(() => undefined)));
    },
  };
};

export const RARE: readonly Draw[] = [
  ...[
    loseOneDirection("from"),
    loseOneDirection("to"),
    slowServer("leader"),
    slowServer("follower"),
    flappingServer,
    loseDisk("leader"),
    loseDisk("follower"),
    fillDisk,
    stallServerBriefly,
    stallDatabase,
    killDatabase,
    restartDatabase,
  ].map(endsQrs),
  lockRelays,
  ...[replaceAllAtOnce, stepDownLeaders, setClocks, killTwoServers].map(endsQrs),
  ...(["relay", "audit", "providers", "webhook-signer"] as const).map((kind) => killBoth(kind)),
  killBoth("sandbox-provider"),
  ...(["robotics", "reconciliation", "webhook-signer", "sandbox-provider"] as const).map((kind) =>
    stallProcess(kind, FOR_MINUTE),
  ),
  ...[deleteConsumers, purgeBuckets].map(endsQrs),
  cutFromDatabase("settlement"),
  cutFromDatabase("registry"),
  slowToDatabase("settlement"),
  slowToDatabase("relay"),
  slowToDatabase("webhook-signer"),
  ...[resetConnections, loseMachine("kill"), loseMachine("cut off"), killMetaLeader].map(endsQrs),
  ...(["gateway", "stations", "settlement", "registry", "robotics", "reconciliation"] as const).map((kind) =>
    killBoth(kind, NO_COPY_MS),
  ),
  ...[killEverything, twoAtOnce, twoAtOnce].map(endsQrs),
  killDuringHandOver("stations"),
  killDuringHandOver("settlement"),
  ...KINDS.map(cutProcess).map(endsQrs),
  ...KINDS.map((kind) => stallProcess(kind, BRIEFLY)),
];
