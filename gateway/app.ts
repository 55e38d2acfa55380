/** Puts one gateway together: replicas first, then the handlers' dependencies, then the server. */
import type { Bus } from "../services/bus/connection.ts";
import type { Log } from "../services/runtime/log.ts";
import { createGatewayBus } from "./gateway-bus.ts";
import { type HandlerDeps, Refusal } from "./handlers/context.ts";
import { DeviceGate } from "./polls/device-gate.ts";
import { ViewCache } from "./polls/view-cache.ts";
import { readiness } from "./readiness.ts";
import { type Replicas, startReplicas } from "./replica/replicas.ts";
import { routes } from "./routes.ts";
import { createClientAddress } from "./server/client-address.ts";
import { DeviceCheck } from "./server/device-check.ts";
import { Server } from "./server/server.ts";
import type { GatewaySettings } from "./settings.ts";
import { AddressThrottle } from "./throttle/address-throttle.ts";
import { ENROLL_RATE } from "./throttle/limits.ts";

export interface GatewayDeps {
  readonly bus: Bus;
  readonly log: Log;
  readonly settings: GatewaySettings;
}

export interface Gateway {
  readonly port: number;
  readonly replicas: Replicas;
  /** Drains and closes the server, then leaves the feeds. */
  stop(): Promise<void>;
}

/** Resolves once the replicas are loaded and the port is open. Throws UserError `port_taken`. */
export async function startGateway(deps: GatewayDeps): Promise<Gateway> {
  const { bus, log, settings } = deps;
  const startedAtMs = performance.now();
  const replicas = await startReplicas(bus, log);
  const gate = new DeviceGate(replicas.credentials.table, (nowMs) => replicas.isFreshForDevices(nowMs));
  const views = new ViewCache({ stations: replicas.stations, switches: () => replicas.switches.current() });
  const deviceCheck = new DeviceCheck({ gate, views });
  const server = new Server(
    {
      pipeline: {
        log,
        handlerDeps: createHandlerDeps(bus, replicas, deviceCheck),
        sessionCheck: replicas,
        deviceCheck,
      },
      polls: {
        gate,
        views,
        onRefused: (route, refusal, requestId) => log.debug({ route, refusal, requestId }, "refused"),
      },
      clientAddress: createClientAddress({
        trustedProxies: settings.trustedProxies,
        isTls: settings.tls !== undefined,
      }),
      tls: settings.tls,
    },
    routes,
  );
  try {
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
      async stop() {
        await server.stop();
        replicas.stop();
      },
    };
  } catch (error) {
    replicas.stop();
    throw error;
  }
}

function requireFresh(isFresh: boolean): void {
  if (!isFresh) throw new Refusal("replica_stale");
}

function createHandlerDeps(bus: Bus, replicas: Replicas, deviceCheck: DeviceCheck): HandlerDeps {
  return {
    bus: createGatewayBus(bus, replicas),
    station(stationId) {
      requireFresh(replicas.areStationsFresh(Date.now()));
      return replicas.stations.state(stationId);
    },
    switches() {
      requireFresh(replicas.areSwitchesFresh());
      return replicas.switches.current();
    },
    deviceView(name, device) {
      const nowMs = Date.now();
      requireFresh(replicas.isFreshForDevices(nowMs));
      return deviceCheck.view(name, device, nowMs);
    },
    requireFresh: () => requireFresh(replicas.isFreshForDevices(Date.now())),
    readiness: () => readiness(bus, replicas),
    enrollThrottle: new AddressThrottle(ENROLL_RATE),
    nowMs: Date.now,
  };
}
