/**
 * Whether this gateway should be sent requests, dependency by dependency. What it is itself made of is required: the bus
 * and its feeds. Services behind the bus are reported as well but decide nothing: all gateways share those, so taking one
 * out of rotation would not help.
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
import { DATABASE_SERVICE_NAMES, type Heard, type ServicesSeen } from "./service-health.ts";

const REQUIRED = ["bus", "stations", "credentials", "sessions", "switches"] as const;
type RequiredReadiness = Readonly<Record<(typeof REQUIRED)[number], DependencyReadiness>>;

export function readiness(seen: {
  readonly bus: Bus;
  readonly replicas: Replicas;
  readonly services: ServicesSeen;
  readonly disk: Disk;
}): Readiness {
  const { bus, replicas, services, disk } = seen;
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
 * Resolves when every required dependency is ready; until then the gateway must not report that it is up. After
 * `withinMs` it throws UserError `gateway_not_fresh` when feeds are not received. What only the relay can repair ends no
 * gateway: it is there, and refuses until the relay has spoken.
 */
export async function waitUntilFresh(
  bus: Bus,
  replicas: Replicas,
  withinMs: number = LIMITS.freshWithinMs,
): Promise<void> {
  const deadlineMs = performance.now() + withinMs;
  let wasHeard = false;
  for (;;) {
    const required = requiredReadiness(bus, replicas);
    const late = missing(required);
    if (late.length === 0) return;
    wasHeard ||= late.every((name) => required[name].detail === "incomplete");
    if (performance.now() >= deadlineMs) {
      if (wasHeard) return;
      const sentence = `The gateway cannot start, because it does not receive the newest state from NATS: ${late.join(", ")}; check that a majority of the NATS servers runs and has free disk space, and start the gateway again.`;
      throw new UserError(sentence, { code: "gateway_not_fresh" });
    }
    await new Promise((resolve) => setTimeout(resolve, LIMITS.freshPollMs));
  }
}

/** The dependencies for want of which this gateway should be sent no requests. */
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

/** One log without a leader leaves the stations of the others: another gateway would not serve more of them. */
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

function ofService({ health, answeredAtMs }: Heard<ServiceHealth>): DependencyReadiness {
  return informative(answeredAtMs, health === undefined ? "no_answer" : health.fault);
}

function ofStationHosts(hosts: ServicesSeen["stationHosts"]): Readiness["dependencies"]["station_hosts"] {
  const owned = hosts.health?.partitionsOwned;
  return {
    ...informative(hosts.answeredAtMs, stationHostsFault(hosts.health)),
    partitions: PARTITION_COUNT,
    partitions_owned: owned ?? null,
  };
}

function stationHostsFault(health: ServicesSeen["stationHosts"]["health"]): DependencyFault | null {
  if (health === undefined) return "no_answer";
  if (health.partitionsOwned < PARTITION_COUNT) return "partitions_unowned";
  return health.isClockWrong ? "clock_wrong" : null;
}

/** The clock of this gateway's machine. A wrong one does no harm, because the time of the bus counts. */
function ofClock({ clock }: Bus): Readiness["dependencies"]["clock"] {
  const detail = clock.isWrong() ? "clock_wrong" : null;
  return { ready: detail === null, required: false, silent_ms: null, detail, ahead_ms: clock.aheadMs() ?? null };
}

/** How each tier of the disk is called in `/readyz`. */
export const DISK_FAULTS = { ok: null, low: "disk_low", reserve: "disk_below_reserve", full: "disk_full" } as const;

/** The disk that this gateway watches, which its services share where they run beside it. The gateway measures it; it comes in no message. */
function ofDisk(disk: Disk): Readiness["dependencies"]["disk"] {
  const detail = DISK_FAULTS[disk.tier()];
  return { ready: detail === null, required: false, silent_ms: null, detail, free_bytes: disk.freeBytes() ?? null };
}

/** As the services see it, because the gateway never does: well when all that answer say so. */
function ofDatabase(services: ServicesSeen): DependencyReadiness {
  const seen = DATABASE_SERVICE_NAMES.flatMap((name) => services[name].health?.databaseReady ?? []);
  const detail = seen.length === 0 ? "no_answer" : seen.every(Boolean) ? null : "database_unreachable";
  return informative(services.databaseAnsweredAtMs, detail);
}
