/** All that the gateway knows without asking: stations, credentials, sessions and kill switches, each from its own feed. */
import type { Bus, BusLog } from "../../services/bus/connection.ts";
import type { Barrier } from "../../services/bus/messages/caller.ts";
import { followSwitches, type SwitchesReplica } from "../../services/bus/switches-replica.ts";
import { CredentialReplica } from "./credential-replica.ts";
import { PollReplica } from "./poll-replica.ts";
import { ReplicaFeed } from "./replica-feed.ts";
import { SessionReplica } from "./session-replica.ts";
import { StationReplica } from "./station-replica.ts";

export interface Replicas {
  readonly stations: StationReplica;
  readonly credentials: CredentialReplica;
  readonly sessions: SessionReplica;
  readonly switches: SwitchesReplica;
  /** When companions last asked for their assignments; told to people, and nothing is refused by it. */
  readonly polls: PollReplica;
  /** The time of the bus, in which the deadlines and the sessions of the replicas are. */
  readonly nowMs: () => number;
  readonly feeds: Readonly<Record<"stations" | "credentials" | "sessions", ReplicaFeed>>;
  /** Whether everything that a device's request depends on is fresh. */
  isFreshForDevices(nowMs: number): boolean;
  areStationsFresh(nowMs: number): boolean;
  areSessionsFresh(nowMs: number): boolean;
  areSwitchesFresh(): boolean;
  /** Whether a credential that is not in the replica, which is fresh, is unknown; else it may be one that is yet to be told. */
  areCredentialsComplete(): boolean;
  /** The same of sessions. */
  areSessionsComplete(): boolean;
  /** Resolves true once all replicas show the write that a barrier speaks of, false when time runs out. */
  waitFor(barrier: Barrier, timeoutMs: number): Promise<boolean>;
  stop(): void;
}

/** Follows all feeds; resolves when each has loaded what there is. */
export async function startReplicas(bus: Bus, log: BusLog): Promise<Replicas> {
  const stations = new StationReplica();
  const credentials = new CredentialReplica(log);
  const sessions = new SessionReplica(log, bus.clock);
  const polls = new PollReplica();
  const pollFeed = new ReplicaFeed(bus, log, polls);
  const feeds = {
    stations: new ReplicaFeed(bus, log, stations),
    credentials: new ReplicaFeed(bus, log, credentials),
    sessions: new ReplicaFeed(bus, log, sessions),
  };
  const [switches] = await Promise.all([
    followSwitches(bus, log),
    feeds.stations.loaded(),
    feeds.credentials.loaded(),
    feeds.sessions.loaded(),
    pollFeed.loaded(),
  ]);
  const areSwitchesFresh = (): boolean => switches.isTrusted();
  return {
    stations,
    credentials,
    sessions,
    switches,
    polls,
    nowMs: () => bus.clock.nowMs(),
    feeds,
    isFreshForDevices: (nowMs) =>
      feeds.stations.isFresh(nowMs) && feeds.credentials.isFresh(nowMs) && areSwitchesFresh(),
    areStationsFresh: (nowMs) => feeds.stations.isFresh(nowMs),
    areSessionsFresh: (nowMs) => feeds.sessions.isFresh(nowMs),
    areSwitchesFresh,
    areCredentialsComplete: () => feeds.credentials.hasAll(),
    areSessionsComplete: () => feeds.sessions.hasAll(),
    async waitFor(barrier, timeoutMs) {
      const { stationLogSequence = 0, credentialsRevision = 0, sessionsRevision = 0, switchesRevision = 0 } = barrier;
      const reached = await Promise.all([
        feeds.stations.waitFor(stationLogSequence, timeoutMs),
        feeds.credentials.waitFor(credentialsRevision, timeoutMs),
        feeds.sessions.waitFor(sessionsRevision, timeoutMs),
        switches.waitFor(switchesRevision, timeoutMs),
      ]);
      return reached.every(Boolean);
    },
    stop() {
      switches.stop();
      pollFeed.stop();
      for (const feed of Object.values(feeds)) feed.stop();
    },
  };
}
