/**
 * Whether a load balancer should send requests to this gateway, with each dependency. The gateway requires the bus and its
 * feeds. It also reports the services behind the bus, but requires none of them: all gateways share them, so another gateway
 * would not serve more requests.
 */
import { PARTITION_COUNT } from "../machines/partition.ts";
import type { Bus } from "../services/bus/connection.ts";
import type { ServiceHealth } from "../services/bus/messages/health.ts";
import type { Disk } from "../services/runtime/disk-watch.ts";
import { UserError } from "../services/runtime/user-error.ts";
import type { DependencyFault, DependencyReadiness, Readiness } from "./api/meta/health.ts";
import { LIMITS } from "./limits.ts";
import { FEED_LIMITS } from "./read-model/replica-feed.ts";
import type { Replicas } from "./read-model/replicas.ts";
import { DATABASE_SERVICE_NAMES, type LastAnswer, type ServiceAnswers } from "./service-health.ts";

const REQUIRED = ["bus", "stations", "credentials", "sessions", "switches"] as const;
type RequiredReadiness = Readonly<Record<(typeof REQUIRED)[number], DependencyReadiness>>;

export function readiness(facts: {
  readonly bus: Bus;
  readonly replicas: Replicas;
  readonly services: ServiceAnswers;
  readonly disk: Disk;
}): Readiness {
  const { bus, replicas, services, disk } = facts;
  const required = requiredReadiness(bus, replicas);
  const { registry, settlement, providers, audit, relay, robotics, webhook_signer, reconciliation } = services;
  return {
    ready: missing(required).length === 0,
    dependencies: {
      ...required,
      registry: ofService(registry),
      settlement: ofService(settlement),
      providers: ofService(providers),
      audit: ofService(audit),
      relay: ofService(relay),
      robotics: ofService(robotics),
      webhook_signer: ofService(webhook_signer),
      reconciliation: ofService(reconciliation),
      station_hosts: ofStationHosts(services.stationHosts),
      database: ofDatabase(services),
      disk: ofDisk(disk),
      clock: ofClock(bus),
    },
  };
}

/**
 * Resolves when every required dependency is ready; until then the gateway must not report that it is up. Throws UserError
 * `gateway_not_fresh` when it does not receive the feeds within `withinMs`. When only the relay's notice of a complete bucket
 * is missing, it resolves then: the gateway runs, and refuses requests until the relay has written the notice.
 */
export async function waitUntilFresh(
  bus: Bus,
  replicas: Replicas,
  withinMs: number = LIMITS.freshWithinMs,
): Promise<void> {
  const deadlineMs = performance.now() + withinMs;
  let hasReceivedAll = false;
  for (;;) {
    const required = requiredReadiness(bus, replicas);
    const late = missing(required);
    if (late.length === 0) return;
    hasReceivedAll ||= late.every((name) => required[name].detail === "incomplete");
    if (performance.now() >= deadlineMs) {
      if (hasReceivedAll) return;
      const sentence = `The gateway cannot start, because it does not receive the newest state from NATS: ${late.join(", ")}; check that a majority of the NATS servers runs and has free disk space, and start the gateway again.`;
      throw new UserError(sentence, { code: "gateway_not_fresh" });
    }
    await new Promise((resolve) => setTimeout(resolve, LIMITS.freshPollMs));
  }
}

/** The required dependencies that are not ready. */
export function missingDependencies(bus: Bus, replicas: Replicas): readonly string[] {
  return missing(requiredReadiness(bus, replicas));
}

function missing(required: RequiredReadiness): readonly (typeof REQUIRED)[number][] {
  return REQUIRED.filter((name) => !required[name].ready);
}

function requiredReadiness(bus: Bus, replicas: Replicas): RequiredReadiness {
  const nowMs = replicas.nowMs();
  const { feeds, switches } = replicas;
  const busFault = bus.hasQuorum() ? null : bus.isUp() ? "no_majority" : "disconnected";
  return {
    bus: { ready: busFault === null, required: true, silent_ms: null, detail: busFault },
    stations: ofLogs(feeds.stations.map((feed) => feed.ageMs(nowMs))),
    credentials: ofBucket(feeds.credentials.ageMs(nowMs), feeds.credentials),
    sessions: ofBucket(feeds.sessions.ageMs(nowMs), feeds.sessions),
    switches: ofBucket(switches.ageMs(), switches),
  };
}

function ofFeed(ageMs: number): DependencyReadiness {
  const ready = ageMs <= FEED_LIMITS.silenceMs;
  const silentMs = Number.isFinite(ageMs) ? Math.round(ageMs) : null;
  return { ready, required: true, silent_ms: silentMs, detail: ready ? null : "silent" };
}

/**
 * Ready while the gateway receives any log: a log without a leader stops only its own stations, and another gateway would not
 * serve more of them.
 */
function ofLogs(agesMs: readonly number[]): DependencyReadiness {
  const [newest, oldest] = [ofFeed(Math.min(...agesMs)), ofFeed(Math.max(...agesMs))];
  return { ...oldest, ready: newest.ready };
}

function ofBucket(ageMs: number, bucket: { isBucketComplete(): boolean }): DependencyReadiness {
  const feed = ofFeed(ageMs);
  return feed.ready && !bucket.isBucketComplete() ? { ...feed, ready: false, detail: "incomplete" } : feed;
}

function informative(answeredAtMs: number | undefined, detail: DependencyFault | null): DependencyReadiness {
  const silentMs = answeredAtMs === undefined ? null : Math.max(0, Math.round(performance.now() - answeredAtMs));
  return { ready: detail === null, required: false, silent_ms: silentMs, detail };
}

function ofService({ health, answeredAtMs }: LastAnswer<ServiceHealth>): DependencyReadiness {
  return informative(answeredAtMs, health === undefined ? "no_answer" : health.fault);
}

function ofStationHosts(hosts: ServiceAnswers["stationHosts"]): Readiness["dependencies"]["station_hosts"] {
  const owned = hosts.health?.partitionsOwned;
  return {
    ...informative(hosts.answeredAtMs, stationHostsFault(hosts.health)),
    partitions: PARTITION_COUNT,
    partitions_owned: owned ?? null,
  };
}

function stationHostsFault(health: ServiceAnswers["stationHosts"]["health"]): DependencyFault | null {
  if (health === undefined) return "no_answer";
  if (health.partitionsOwned < PARTITION_COUNT) return "partitions_unowned";
  return health.isClockWrong ? "clock_wrong" : null;
}

/** The clock of this gateway's machine. A wrong clock does no harm, because the gateway uses the time of the bus. */
function ofClock({ clock }: Bus): Readiness["dependencies"]["clock"] {
  const detail = clock.isWrong() ? "clock_wrong" : null;
  return { ready: detail === null, required: false, silent_ms: null, detail, ahead_ms: clock.aheadMs() ?? null };
}

/** The word for each tier of the disk in `/readyz`. */
export const DISK_FAULTS = { ok: null, low: "disk_low", reserve: "disk_below_reserve", full: "disk_full" } as const;

/** The disk that this gateway watches. Services on the same machine use the same disk. */
function ofDisk(disk: Disk): Readiness["dependencies"]["disk"] {
  const detail = DISK_FAULTS[disk.tier()];
  return { ready: detail === null, required: false, silent_ms: null, detail, free_bytes: disk.freeBytes() ?? null };
}

/** The services report it, because the gateway does not use PostgreSQL: ready when each service that answers reports it so. */
function ofDatabase(services: ServiceAnswers): DependencyReadiness {
  const reports = DATABASE_SERVICE_NAMES.flatMap((name) => services[name].health ?? []);
  return informative(services.databaseAnsweredAtMs, databaseFault(reports));
}

function databaseFault(reports: readonly ServiceHealth[]): DependencyFault | null {
  if (reports.length === 0) return "no_answer";
  if (!reports.every(({ databaseReady }) => databaseReady)) return "database_unreachable";
  return reports.some(({ isDatabaseClockWrong }) => isDatabaseClockWrong === true) ? "clock_wrong" : null;
}
