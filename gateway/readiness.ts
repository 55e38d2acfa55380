/** Whether this gateway should be sent requests, dependency by dependency. */
import type { Bus } from "../services/bus/connection.ts";
import { FEED_LIMITS } from "./replica/limits.ts";
import type { ReplicaFeed } from "./replica/replica-feed.ts";
import type { Replicas } from "./replica/replicas.ts";

export interface DependencyReadiness {
  readonly ready: boolean;
  /** How long ago the dependency was last known to be complete; null when it has no feed, or is not complete. */
  readonly silent_ms: number | null;
}

export interface Readiness {
  readonly ready: boolean;
  readonly dependencies: Readonly<Record<DependencyName, DependencyReadiness>>;
}

export const DEPENDENCIES = ["bus", "stations", "credentials", "sessions", "switches"] as const;
export type DependencyName = (typeof DEPENDENCIES)[number];

/** Services behind the bus are not among them: all gateways share those, and taking one out would help nobody. */
export function readiness(bus: Bus, replicas: Replicas): Readiness {
  const nowMs = Date.now();
  const { feeds, switches } = replicas;
  const dependencies = {
    bus: { ready: bus.isUp(), silent_ms: null },
    stations: ofFeed(feeds.stations, nowMs),
    credentials: ofFeed(feeds.credentials, nowMs),
    sessions: ofFeed(feeds.sessions, nowMs),
    switches: {
      ready: switches.silentForMs() <= FEED_LIMITS.silenceMs,
      silent_ms: Math.round(switches.silentForMs()),
    },
  };
  return { ready: Object.values(dependencies).every((dependency) => dependency.ready), dependencies };
}

function ofFeed(feed: ReplicaFeed, nowMs: number): DependencyReadiness {
  const ageMs = feed.ageMs(nowMs);
  return { ready: feed.isFresh(nowMs), silent_ms: Number.isFinite(ageMs) ? Math.round(ageMs) : null };
}
