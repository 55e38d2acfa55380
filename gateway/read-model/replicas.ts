/** The replicas in the gateway's memory: stations, credentials, sessions, kill switches and polls, each with its own feed. */
import type { Bus } from "../../services/bus/connection.ts";
import type { Barrier } from "../../services/bus/messages/caller.ts";
import { type StationLogs, SWITCHES } from "../../services/bus/streams.ts";
import { followSwitches, type SwitchesReplica } from "../../services/bus/switches-replica.ts";
import type { LineLog } from "../../services/runtime/log.ts";
import { CredentialReplica } from "./credential-replica.ts";
import { PollReplica } from "./poll-notes.ts";
import { ReplicaFeed } from "./replica-feed.ts";
import { SessionReplica } from "./session-replica.ts";
import { StationReplica } from "./station-replica.ts";

export interface Replicas {
  readonly stations: StationReplica;
  readonly credentials: CredentialReplica;
  readonly sessions: SessionReplica;
  readonly switches: SwitchesReplica;
  /** When companions last asked for their assignments. Only for people to see: the gateway refuses no request because of it. */
  readonly polls: PollReplica;
  /** The time of the bus. The deadlines and sessions in the replicas use this clock. */
  readonly nowMs: () => number;
  /** `stations` has one feed for each log. */
  readonly feeds: {
    readonly stations: readonly ReplicaFeed[];
    readonly credentials: ReplicaFeed;
    readonly sessions: ReplicaFeed;
  };
  /** Whether the replicas that every device's request needs are fresh. `isStationFresh` covers the device's station. */
  isFreshForDevices(nowMs: number): boolean;
  /** Whether the log of this station is fresh: another log may have lost its leader. */
  isStationFresh(stationId: number, nowMs: number): boolean;
  areSessionsFresh(nowMs: number): boolean;
  areSwitchesFresh(): boolean;
  /** Whether a credential that is not in the replica is unknown. If false, its message may not have arrived yet. */
  areCredentialsComplete(): boolean;
  /** The same for sessions. */
  areSessionsComplete(): boolean;
  /** Resolves true once all replicas show the write of the barrier, false when `timeoutMs` passes first. */
  waitFor(barrier: Barrier, timeoutMs: number): Promise<boolean>;
  /** Resolves once the replica shows a station's commit with this sequence, or after `timeoutMs`. */
  waitForStation(stationId: number, sequence: number, timeoutMs: number): Promise<void>;
  /** Resolves true once the replica has all that the station committed before this call, false without a proof in time. */
  waitForNewest(stationId: number): Promise<boolean>;
  /** The same for all credentials. */
  waitForNewestCredentials(): Promise<boolean>;
  /** The same for all sessions. */
  waitForNewestSessions(): Promise<boolean>;
  stop(): void;
}

/** Follows all feeds. Resolves when each has loaded all existing data. */
export async function startReplicas(bus: Bus, logs: StationLogs, log: LineLog): Promise<Replicas> {
  const stations = new StationReplica(logs);
  const credentials = new CredentialReplica(log);
  const sessions = new SessionReplica(log, bus.clock);
  const polls = new PollReplica(bus.clock);
  const pollFeed = new ReplicaFeed(bus, log, polls);
  const feeds = {
    stations: stations.targets.map((target) => new ReplicaFeed(bus, log, target)),
    credentials: new ReplicaFeed(bus, log, credentials),
    sessions: new ReplicaFeed(bus, log, sessions),
  };
  const [switches] = await Promise.all([
    followSwitches(bus, log),
    ...feeds.stations.map((feed) => feed.loaded()),
    feeds.credentials.loaded(),
    feeds.sessions.loaded(),
    pollFeed.loaded(),
  ]);
  const byStream = new Map<string, Pick<ReplicaFeed, "waitFor">>([
    ...logs.all.flatMap(({ name, index }) => {
      const feed = feeds.stations[index];
      return feed === undefined ? [] : [[name, feed] as const];
    }),
    [credentials.stream, feeds.credentials],
    [sessions.stream, feeds.sessions],
    [`KV_${SWITCHES.name}`, switches],
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
    isFreshForDevices: (nowMs) => feeds.credentials.isFresh(nowMs) && areSwitchesFresh(),
    isStationFresh: (stationId, nowMs) => feeds.stations[logs.of(stationId).index]?.isFresh(nowMs) === true,
    areSessionsFresh: (nowMs) => feeds.sessions.isFresh(nowMs),
    areSwitchesFresh,
    areCredentialsComplete: () => feeds.credentials.hasAll(),
    areSessionsComplete: () => feeds.sessions.hasAll(),
    async waitFor(barrier, timeoutMs) {
      const waits = Object.entries(barrier.positions).map(async ([stream, sequence]) => {
        const feed = byStream.get(stream);
        return feed === undefined || (await feed.waitFor(sequence, timeoutMs));
      });
      return (await Promise.all(waits)).every(Boolean);
    },
    async waitForStation(stationId, sequence, timeoutMs) {
      await feeds.stations[logs.of(stationId).index]?.waitFor(sequence, timeoutMs);
    },
    waitForNewest: async (stationId) => (await feeds.stations[logs.of(stationId).index]?.waitUntilNewest()) === true,
    waitForNewestCredentials: () => feeds.credentials.waitUntilNewest(),
    waitForNewestSessions: () => feeds.sessions.waitUntilNewest(),
    stop() {
      switches.stop();
      pollFeed.stop();
      for (const feed of [...feeds.stations, feeds.credentials, feeds.sessions]) feed.stop();
    },
  };
}
