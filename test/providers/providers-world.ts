/**
 * The providers service with everything that it calls: real NATS, PostgreSQL and settlement service, the sandbox provider
 * over HTTP, an HTTP server that forwards callbacks like the gateway, and stations whose answers a test sets.
 */

import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { z } from "zod";
import { startAuditService } from "../../services/audit/service.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import type { Caller } from "../../services/bus/messages/caller.ts";
import { prepareIntent } from "../../services/bus/messages/intents.ts";
import { openOrder } from "../../services/bus/messages/orders.ts";
import * as configMessages from "../../services/bus/messages/provider-configs.ts";
import * as paymentMessages from "../../services/bus/messages/provider-payments.ts";
import { call, type Operation, type ReplyOf, type SentRequestOf } from "../../services/bus/operation.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { startProvidersService } from "../../services/providers/service.ts";
import { startRelayService } from "../../services/relay/service.ts";
import { createLog } from "../../services/runtime/log.ts";
import { startMetrics } from "../../services/runtime/metrics-port.ts";
import type { Service, ServiceDeps } from "../../services/runtime/service.ts";
import { startSandboxProviderService } from "../../services/sandbox-provider/service.ts";
import { startSettlementService } from "../../services/settlement/service.ts";
import { STATION_LIMITS } from "../../services/stations/limits.ts";
import { startStationsService } from "../../services/stations/service.ts";
import { keepBucketsComplete } from "../support/buckets-complete.ts";
import { HOLDS_LOCKS } from "../support/held-locks.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { refuseFlushes } from "../support/refuse-flushes.ts";
import { type Series, scrape } from "../support/scrape.ts";
import { cloneDatabase, startNats } from "../support/servers.ts";
import { waitFor } from "../support/wait-for.ts";
import { type CallbackGateway, startCallbackGateway } from "./callback-gateway.ts";
import { type ScriptedStations, startScriptedStations } from "./scripted-stations.ts";

export { refusalOf } from "../support/refusal-of.ts";

export const newKey = (): string => randomBytes(32).toString("base64url");

export interface Place {
  readonly organizationId: number;
  readonly filialId: number;
  readonly stationId: number;
  readonly owner: Caller;
  readonly cashier: Caller;
  readonly operator: Caller;
}

export interface Intent {
  readonly intentId: number;
  readonly orderId: number;
  readonly orderDisplayNumber: number;
  readonly amountMinor: string;
  readonly currency: string;
  /** The deadline of its collection, the same in each request. */
  readonly expiresAtMs: number;
}

type AnyOperation = Operation<z.ZodType, z.ZodType>;

export interface ProvidersWorld {
  readonly bus: Bus;
  readonly database: Database;
  readonly databaseUrl: string;
  readonly natsUrl: string;
  readonly sandboxUrl: string;
  readonly gateway: CallbackGateway;
  readonly stations: ScriptedStations;
  readonly environment: NodeJS.ProcessEnv;
  /** A new station of a new organization. It is a test station unless the options state otherwise. */
  openPlace(options?: { readonly isSandbox?: boolean; readonly currency?: string }): Promise<Place>;
  /** An open order of this amount in minor units, with an intent id for it. */
  openIntent(place: Place, amountMinor: number): Promise<Intent>;
  ask<TOperation extends AnyOperation>(
    operation: TOperation,
    request: SentRequestOf<TOperation>,
    timeoutMs?: number,
  ): Promise<ReplyOf<TOperation>>;
  /** Asks the provider for a payment of this intent. Like the actor host, it repeats the request after `unavailable`. */
  askProvider(
    place: Place,
    configId: number,
    intent: Intent,
  ): Promise<ReplyOf<typeof paymentMessages.createProviderPayment>>;
  /** The same without repetitions. It rejects with the service's refusal. */
  askProviderOnce: ProvidersWorld["askProvider"];
  /** A sandbox config of the place's filial, with a separate account. */
  addSandboxConfig(place: Place): Promise<number>;
  /** Stops the providers service, with `whileDown` before it is started again. */
  restartProviders(whileDown?: () => Promise<void>): Promise<void>;
  /** The metrics of the service that was started last. */
  scrape(): Promise<readonly Series[]>;
  /** Starts another process of the service. */
  addProviders(): Promise<Service>;
  stop(): Promise<void>;
}

export async function startProvidersWorld(
  options: {
    /** The real actor host, the registry's outbox relay and the audit copy, instead of scripted stations. */
    readonly hasRealStations?: boolean;
  } = {},
): Promise<ProvidersWorld> {
  const [nats, testDatabase] = await Promise.all([startNats(), cloneDatabase()]);
  const log = createLog({ service: "test", level: "silent" });
  const bus = await connectBus({ url: nats.url, name: "test", log });
  await ensureStreams(bus, { replicas: 1, logs: 1 });
  await keepBucketsComplete(bus);
  const gateway = await startCallbackGateway(bus);
  const settings = { natsUrl: nats.url, databaseUrl: testDatabase.url, logLevel: "silent" } as const;
  const environment: NodeJS.ProcessEnv = {
    PROVIDER_SECRETS_KEY: newKey(),
    SANDBOX_PROVIDER_KEY: newKey(),
    SANDBOX_PROVIDER_INSTALLATION_KEY: newKey(),
    SANDBOX_PROVIDER_PORT: "0",
    SANDBOX_PROVIDER_DECIDES_AFTER_MS: "100",
    PROVIDER_CALLBACK_BASE_URL: gateway.url,
  };
  const shared: ServiceDeps = { bus, logs: ONE_LOG, log, settings, environment };
  const settlement = await startSettlementService(shared);
  const sandbox = await startSandboxProviderService(shared);
  environment["SANDBOX_PROVIDER_URL"] = sandbox.url;
  const stations = startScriptedStations(bus, { isSilent: options.hasRealStations === true });
  if (options.hasRealStations !== true) await refuseFlushes(bus.nc);
  const real = options.hasRealStations === true ? await startRealStations(shared) : [];
  // Each start has a separate registry, like each process.
  let metrics = await startMetrics("providers", { host: "127.0.0.1", port: 0 });
  let providers = await startProvidersService({ ...shared, metrics: metrics.registry });
  const further: Service[] = [];
  const database = openDatabase({ ...HOLDS_LOCKS, url: testDatabase.url, maxConnections: 3 });
  let people = 0;

  const ask: ProvidersWorld["ask"] = (operation, request, timeoutMs = 15_000) =>
    call(bus.nc, operation, request, timeoutMs) as Promise<ReplyOf<typeof operation>>;
  const askProviderOnce: ProvidersWorld["askProviderOnce"] = (place, configId, intent) => {
    const { organizationId, stationId } = place;
    const { intentId, orderDisplayNumber, amountMinor, currency, expiresAtMs } = intent;
    return ask(paymentMessages.createProviderPayment, {
      intentId,
      stationId,
      organizationId,
      configId,
      orderDisplayNumber,
      amountMinor,
      currency,
      expiresAtMs,
    });
  };
  const askProvider: ProvidersWorld["askProvider"] = async (...asked) => {
    const untilMs = performance.now() + STATION_LIMITS.providerWaitMs;
    for (;;) {
      try {
        return await askProviderOnce(...asked);
      } catch (error) {
        const mayAskAgain = error instanceof RefusedError && error.refusal.code === "unavailable";
        if (!mayAskAgain || performance.now() > untilMs) throw error;
        await delay(STATION_LIMITS.providerLongestPauseMs);
      }
    }
  };

  return {
    bus,
    database,
    databaseUrl: testDatabase.url,
    natsUrl: nats.url,
    sandboxUrl: sandbox.url,
    gateway,
    stations,
    environment,
    ask,
    async openPlace({ isSandbox = true, currency = "EUR" } = {}) {
      const [row] = await database<[{ organization_id: number; filial_id: number; station_id: number }]>`
        with o as (insert into organizations (name) values ('Organization') returning organization_id),
        f as (insert into filials (organization_id, name) select organization_id, 'Filial' from o returning organization_id, filial_id)
        insert into stations (organization_id, filial_id, name, currency, sandbox)
        select organization_id, filial_id, 'Counter', ${currency}, ${isSandbox} from f
        returning organization_id, filial_id, station_id`;
      const { organization_id: organizationId, filial_id: filialId, station_id: stationId } = row;
      const person = (role: Caller["role"], permission: Caller["permissions"][number], name: string): Caller => {
        people += 1;
        return { userId: people, name, organizationId, role, permissions: [permission] };
      };
      return {
        organizationId,
        filialId,
        stationId,
        owner: person("owner", "organization.manage", "Olga"),
        cashier: person("cashier", "payments.collect", "Ada"),
        operator: person("reconciliation_operator", "reconciliation.manage", "Rosa"),
      };
    },
    async openIntent({ cashier: caller, stationId }, amountMinor) {
      const lines = [{ name: "Soup", quantity: 1, unitAmountMinor: String(amountMinor) }];
      const { order } = await ask(openOrder, { caller, stationId, lines });
      const { intentId } = await ask(prepareIntent, { stationId, orderId: order.orderId });
      const { orderId, orderDisplayNumber, totalMinor, currency } = order;
      const expiresAtMs = Date.now() + 60_000;
      return { intentId, orderId, orderDisplayNumber, amountMinor: totalMinor, currency, expiresAtMs };
    },
    askProvider,
    askProviderOnce,
    async addSandboxConfig({ owner: caller, filialId }) {
      const request = { caller, filialId, kind: "sandbox", mode: "test", name: "Sandbox", settings: {} } as const;
      return (await ask(configMessages.createProviderConfig, request)).config.configId;
    },
    async restartProviders(whileDown) {
      await providers.stop();
      await whileDown?.();
      await metrics.stop();
      metrics = await startMetrics("providers", { host: "127.0.0.1", port: 0 });
      providers = await startProvidersService({ ...shared, metrics: metrics.registry });
    },
    scrape: () => scrape(metrics.port),
    async addProviders() {
      const service = await startProvidersService(shared);
      further.push(service);
      return service;
    },
    async stop() {
      for (const service of further) await service.stop();
      await providers.stop();
      await metrics.stop();
      await sandbox.stop();
      for (const service of real.toReversed()) await service.stop();
      await settlement.stop();
      await gateway.stop();
      stations.stop();
      await closeDatabase(database);
      await bus.close();
      await Promise.all([nats.stop(), testDatabase.drop()]);
    },
  };
}

/** Waits until the service has received a kill switch of any kind. */
export async function untilFrozen(world: ProvidersWorld, place: Place, configId: number): Promise<void> {
  await waitFor("the switch", async () => {
    const answer = await world.askProvider(place, configId, await world.openIntent(place, 1203));
    return !answer.created && answer.reason === "provider_frozen";
  });
}

async function startRealStations(shared: ServiceDeps): Promise<Service[]> {
  return [await startAuditService(shared), await startRelayService(shared), await startStationsService(shared)];
}
