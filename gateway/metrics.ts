/**
 * The gateway's metrics that are read at each scrape: the age of its replicas, the answers to polls, and what is open.
 * `gateway/http/exchange.ts` counts single requests.
 */
import type { Registry } from "prom-client";
import { addGauge, addGauges, addReadCount } from "../services/runtime/metrics.ts";
import type { Server } from "./http/server.ts";
import type { LiveSockets } from "./live/live-sockets.ts";
import type { PollCounts } from "./read-model/polls.ts";
import type { Replicas } from "./read-model/replicas.ts";

interface GatewayFacts {
  readonly replicas: Replicas;
  readonly server: Pick<Server, "connections" | "requestsInFlight" | "unreadBodies" | "unsent">;
  readonly pollCounts: PollCounts;
  readonly liveSockets: Pick<LiveSockets, "size">;
  /** Callbacks that got no slot so far, by whether their signature could be valid. */
  readonly callbacksRefused: () => Readonly<Record<"signed" | "unsigned", number>>;
  /** Requests that were throttled so far, by what was counted. */
  readonly throttled: () => Readonly<Record<"credential" | "address" | "consumer" | "log_in", number>>;
}

export function addGatewayMetrics(metrics: Registry | undefined, facts: GatewayFacts): void {
  const { replicas, server, pollCounts, liveSockets, throttled, callbacksRefused } = facts;
  const { feeds, stations, credentials, switches } = replicas;
  addGauge(metrics, "gateway_replica_stations", "Stations in the replica.", () => stations.size);
  addGauge(metrics, "gateway_replica_credentials", "Credentials in the replica.", () => credentials.table.size);
  addGauges(
    metrics,
    {
      name: "gateway_replica_age_seconds",
      help: "Seconds since a replica was last known to be complete, of each station log; +Inf while that is unknown.",
      labels: ["replica", "log"],
    },
    () => [
      ...feeds.stations.map(
        (feed) => [{ replica: "stations", log: feed.stream }, feed.ageMs(replicas.nowMs()) / 1_000] as const,
      ),
      ...(["credentials", "sessions"] as const).map(
        (replica) => [{ replica, log: "" }, feeds[replica].ageMs(replicas.nowMs()) / 1_000] as const,
      ),
      [{ replica: "switches", log: "" }, switches.ageMs() / 1_000],
    ],
  );
  addReadCount(
    metrics,
    {
      name: "gateway_polls_total",
      help: "Polls answered from memory, by operation and answer: 200, 304, or the error code.",
      labels: ["operation", "answer"],
    },
    () => pollCounts.answers(),
  );
  addReadCount(
    metrics,
    {
      name: "gateway_throttled_total",
      help: "Requests that were throttled, by what was counted: a device's credential, an address that enrolls, a robotics consumer, or the place of a log-in.",
      labels: ["throttle"],
    },
    () => Object.entries(throttled()).map(([throttle, count]) => [{ throttle }, count] as const),
  );
  addReadCount(
    metrics,
    {
      name: "gateway_callbacks_refused_total",
      help: "Callbacks that were refused because no slot was free, by whether their signature could be valid.",
      labels: ["lane"],
    },
    () => perKey("lane", callbacksRefused()),
  );
  addConnectionMetrics(metrics, server);
  addGauge(metrics, "gateway_live_sockets", "Open WebSockets of cashiers.", () => liveSockets.size);
  addGauge(
    metrics,
    "gateway_requests_in_flight",
    "Requests under way that need more than memory and have their body.",
    () => server.requestsInFlight,
  );
  addUnreadBodyMetrics(metrics, server);
}

function addConnectionMetrics(metrics: Registry | undefined, { connections, unsent }: GatewayFacts["server"]): void {
  addGauge(metrics, "gateway_connections", "Open connections, WebSockets included.", () => connections.open);
  addGauges(
    metrics,
    {
      name: "gateway_connections_limit",
      help: "The most connections: of one address, and in total.",
      labels: ["bound"],
    },
    () => [
      [{ bound: "address" }, connections.bounds.perAddress],
      [{ bound: "all" }, connections.bounds.inAll],
    ],
  );
  addReadCount(
    metrics,
    {
      name: "gateway_connections_refused_total",
      help: "New connections that were closed at once, by the bound that was reached.",
      labels: ["bound"],
    },
    () => perKey("bound", connections.refused),
  );
  addReadCount(
    metrics,
    {
      name: "gateway_connections_made_room_total",
      help: "Connections without a request that were closed to make room for a new one, by the bound that was reached.",
      labels: ["bound"],
    },
    () => perKey("bound", connections.madeRoom),
  );
  addUnsentMetrics(metrics, unsent);
}

function addUnreadBodyMetrics(metrics: Registry | undefined, { unreadBodies }: GatewayFacts["server"]): void {
  addGauge(metrics, "gateway_unread_bodies", "Requests whose body has not arrived yet.", () => unreadBodies.size);
  addReadCount(
    metrics,
    {
      name: "gateway_unread_bodies_closed_total",
      help: "Requests that were ended because too many bodies had not arrived, by the bound that was reached.",
      labels: ["bound"],
    },
    () => perKey("bound", unreadBodies.closed),
  );
}

function addUnsentMetrics(metrics: Registry | undefined, unsent: GatewayFacts["server"]["unsent"]): void {
  addGauge(
    metrics,
    "gateway_unsent_answers",
    "Answers that wait for clients that do not read them.",
    () => unsent.size,
  );
  addGauge(metrics, "gateway_unsent_bytes", "Bytes in memory for answers that wait.", () => unsent.bytes);
  addReadCount(
    metrics,
    {
      name: "gateway_unsent_closed_total",
      help: "Connections that were closed because an answer waited: its client stalled, or too much waited for it or for all.",
      labels: ["reason"],
    },
    () => perKey("reason", unsent.closed),
  );
}

/** Counts by their key, as series with that label. */
function perKey<TKey extends string>(label: TKey, counts: Readonly<Record<string, number>>) {
  return Object.entries(counts).map(([value, count]) => [{ [label]: value } as Record<TKey, string>, count] as const);
}
