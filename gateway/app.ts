/** Starts one gateway: first the replicas, then the dependencies of the handlers, then the server. */
import type { Registry } from "prom-client";
import { reportClock } from "../services/bus/bus-clock.ts";
import type { Bus } from "../services/bus/connection.ts";
import { checkStreams } from "../services/bus/ensure-streams.ts";
import { addRepeatedCount } from "../services/bus/exchange.ts";
import { knownOperations } from "../services/bus/operation.ts";
import { StationLogs } from "../services/bus/streams.ts";
import { type Disk, UNWATCHED } from "../services/runtime/disk-watch.ts";
import { FairSlots } from "../services/runtime/fair-slots.ts";
import type { Log } from "../services/runtime/log.ts";
import { addCount, type Count } from "../services/runtime/metrics.ts";
import {
  BUS_FAILURES,
  type BusFailures,
  createGatewayBus,
  FILE_OPERATION,
  HEARTBEAT_OPERATION,
  STATION_OPERATION,
} from "./gateway-bus.ts";
import { ConsumerCheck, DeviceCheck, PlatformCheck } from "./http/caller-checks.ts";
import { createClientAddress } from "./http/client-address.ts";
import { openFileLimit } from "./http/connection-counts.ts";
import { connectionBounds } from "./http/connections.ts";
import { RequestMetrics } from "./http/exchange.ts";
import { ApiError, type GatewayBus, type HandlerDeps } from "./http/handler-context.ts";
import { LogInGate } from "./http/log-in-gate.ts";
import { Server } from "./http/server.ts";
import { LIMITS } from "./limits.ts";
import { LiveSockets } from "./live/live-sockets.ts";
import { addGatewayMetrics } from "./metrics.ts";
import { CallbackLanes } from "./read-model/callback-lanes.ts";
import { DeviceGate } from "./read-model/device-gate.ts";
import { MissingStations } from "./read-model/missing-stations.ts";
import { PollNotes } from "./read-model/poll-notes.ts";
import { PollCounts } from "./read-model/polls.ts";
import { type Replicas, startReplicas } from "./read-model/replicas.ts";
import {
  AddressThrottle,
  CALLBACK_RATE,
  CERTIFICATION_LOG_RATE,
  ENROLL_RATE,
  PLATFORM_RATE,
} from "./read-model/throttles.ts";
import { ViewCache } from "./read-model/view-cache.ts";
import { missingDependencies, readiness, waitUntilFresh } from "./readiness.ts";
import { routes } from "./routes.ts";
import { ServicesHealth } from "./service-health.ts";
import type { GatewaySettings } from "./settings.ts";

interface GatewayDeps {
  readonly bus: Bus;
  readonly log: Log;
  readonly settings: GatewaySettings;
  /** The disk that this process watches; none in most tests. */
  readonly disk?: Disk;
  /** The gateway registers its metrics here; undefined when no program collects them. */
  readonly metrics?: Registry | undefined;
}

export interface Gateway {
  readonly port: number;
  readonly replicas: Replicas;
  /** The names in `REQUIRED` of the dependencies that are not ready. With one of them the gateway is not ready. */
  missing(): readonly string[];
  /** Drains and closes the server, then stops the replicas. */
  stop(): Promise<void>;
}

/**
 * Resolves once everything in `REQUIRED` is ready and the port is open. Throws `UserError` with `port_taken` or
 * `gateway_not_fresh`.
 */
export async function startGateway(deps: GatewayDeps): Promise<Gateway> {
  const { bus, log, settings, metrics, disk = UNWATCHED } = deps;
  const startedAtMs = performance.now();
  reportClock({ clock: bus.clock, log, metrics });
  const logs = new StationLogs((await checkStreams(bus, { log })).logs);
  const replicas = await startReplicas(bus, logs, log);
  const gate = new DeviceGate({
    table: replicas.credentials.table,
    isFresh: (nowMs) => replicas.isFreshForDevices(nowMs),
    logs,
    isLogFresh: (index, nowMs) => replicas.feeds.stations[index]?.isFresh(nowMs) === true,
    isComplete: () => replicas.areCredentialsComplete(),
    waitForNewest: () => replicas.waitForNewestCredentials(),
  });
  const views = new ViewCache({ stations: replicas.stations, switches: () => replicas.switches.current() });
  const deviceCheck = new DeviceCheck({ gate, views, nowMs: replicas.nowMs });
  const pollCounts = new PollCounts();
  const enrollThrottle = new AddressThrottle(ENROLL_RATE);
  const logInGate = new LogInGate(replicas.nowMs);
  const gatewayBus = createGatewayBus({ bus, replicas, failures: addBusFailures(metrics) });
  const missing = new MissingStations(gatewayBus);
  const liveSockets = new LiveSockets({ replicas, missing, log });
  const handlerDeps = createHandlerDeps({
    bus,
    disk,
    gatewayBus,
    replicas,
    missing,
    deviceCheck,
    enrollThrottle,
    logInGate,
    log,
  });
  const consumerCheck = new ConsumerCheck(handlerDeps.bus);
  const server = new Server(
    {
      pipeline: {
        log,
        handlerDeps,
        sessionCheck: replicas,
        deviceCheck,
        platformCheck: new PlatformCheck(settings.platformKey, new AddressThrottle(PLATFORM_RATE)),
        consumerCheck,
        notEffective: addNotEffective(metrics),
      },
      polls: {
        gate,
        views,
        nowMs: replicas.nowMs,
        counts: pollCounts,
        notes: new PollNotes(bus.nc, replicas.polls),
        onRefused: (route, refusal, requestId) => log.debug({ route, refusal, requestId }, "refused"),
      },
      connectionBounds: connectionBounds({
        openFiles: openFileLimit(),
        inAll: settings.maxConnections,
        perAddress: settings.maxConnectionsPerAddress,
      }),
      clientAddress: createClientAddress({
        trustedProxies: settings.trustedProxies,
        isTls: settings.tls !== undefined,
        onUnnamedProxy: (peer) =>
          log.warn(
            { peer },
            "a proxy that TRUSTED_PROXIES does not name forwards requests: all its clients count as one",
          ),
      }),
      tls: settings.tls,
      metrics: new RequestMetrics(metrics, routes),
      live: { sockets: liveSockets, replicas, missing },
    },
    routes,
  );
  addRepeatedCount(metrics, bus.nc, knownOperations);
  addGatewayMetrics(metrics, {
    replicas,
    server,
    pollCounts,
    liveSockets,
    callbacksRefused: () => handlerDeps.callbackLanes.refused,
    throttled: () => ({
      credential: gate.throttledCount,
      address: enrollThrottle.throttledCount,
      consumer: consumerCheck.throttledCount,
      log_in: logInGate.throttledCount,
    }),
  });
  const stop = async (): Promise<void> => {
    await server.stop();
    replicas.stop();
  };
  try {
    await waitUntilFresh(bus, replicas);
    const port = server.listen({ host: settings.host, port: settings.port, shared: settings.sharedPort });
    log.info(
      {
        port,
        stations: replicas.stations.size,
        credentials: replicas.credentials.table.size,
        loadedInMs: Math.round(performance.now() - startedAtMs),
      },
      "the gateway listens",
    );
    return {
      port,
      replicas,
      missing: () => missingDependencies(bus, replicas),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function addBusFailures(metrics: Registry | undefined): BusFailures {
  return addCount(metrics, {
    name: "gateway_bus_failures_total",
    help: "Requests to services and stations that were not done: no answer, or an answer that it cannot be done now.",
    labels: {
      operation: [...knownOperations(), STATION_OPERATION, HEARTBEAT_OPERATION, FILE_OPERATION],
      failure: BUS_FAILURES,
    },
  });
}

function addNotEffective(metrics: Registry | undefined): Count<"operation"> {
  return addCount(metrics, {
    name: "gateway_changes_not_effective_total",
    help: "Answers to changes that were stored and not yet effective when the answer was sent, by operation.",
    labels: { operation: routes.filter((row) => row.awaitsEffect === true).map((row) => row.operationId) },
  });
}

function requireFresh(isFresh: boolean): void {
  if (!isFresh) throw new ApiError("replica_stale");
}

function createHandlerDeps(parts: {
  readonly bus: Bus;
  readonly disk: Disk;
  readonly gatewayBus: GatewayBus;
  readonly replicas: Replicas;
  readonly missing: MissingStations;
  readonly deviceCheck: DeviceCheck;
  readonly enrollThrottle: AddressThrottle;
  readonly logInGate: LogInGate;
  readonly log: Log;
}): HandlerDeps {
  const { bus, disk, gatewayBus, log, replicas, missing, deviceCheck, enrollThrottle, logInGate } = parts;
  const health = new ServicesHealth(bus.nc);
  return {
    bus: gatewayBus,
    station(stationId) {
      requireFresh(replicas.isStationFresh(stationId, replicas.nowMs()));
      return replicas.stations.state(stationId);
    },
    async newestStation(stationId) {
      requireFresh(await replicas.waitForNewest(stationId));
      return replicas.stations.state(stationId);
    },
    isFresh: (stationId) => replicas.isStationFresh(stationId, replicas.nowMs()) && replicas.areSwitchesFresh(),
    whyNoStation: (caller, stationId) => missing.whyNone(caller, stationId),
    switches() {
      requireFresh(replicas.areSwitchesFresh());
      return replicas.switches.current();
    },
    deviceView(name, device) {
      const nowMs = replicas.nowMs();
      requireFresh(replicas.isFreshForDevices(nowMs) && replicas.isStationFresh(device.stationId, nowMs));
      return deviceCheck.view(name, device, nowMs);
    },
    polledAtMs: (deviceId) => replicas.polls.polledAtMs(deviceId),
    requireFresh: () => requireFresh(replicas.isFreshForDevices(replicas.nowMs())),
    readiness: async () => readiness({ bus, replicas, services: await health.check(), disk }),
    enrollThrottle,
    enrollSlots: new FairSlots(LIMITS.enrollments),
    logInGate,
    uploadSlots: new FairSlots(LIMITS.uploads),
    callbackThrottle: new AddressThrottle(CALLBACK_RATE),
    certificationLogThrottle: new AddressThrottle(CERTIFICATION_LOG_RATE),
    callbackLanes: new CallbackLanes(),
    log,
    nowMs: replicas.nowMs,
  };
}
