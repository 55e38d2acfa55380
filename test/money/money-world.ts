/**
 * All real parts of a payment: NATS and PostgreSQL; in the test's process the settlement service, registry, relay and audit
 * copy; in separate processes, which tests kill, two actor hosts and the providers service. This folder is not in the folder
 * of one service, because it checks all of them together.
 */

import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { z } from "zod";
import { startAuditService } from "../../services/audit/service.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import type { Caller } from "../../services/bus/messages/caller.ts";
import { openOrder } from "../../services/bus/messages/orders.ts";
import { createProviderConfig } from "../../services/bus/messages/provider-configs.ts";
import type {
  RequestedCommand,
  StationRequest,
  StationResponse,
} from "../../services/bus/messages/station-commands.ts";
import { call, type Operation, type ReplyOf, type SentRequestOf } from "../../services/bus/operation.ts";
import { RefusedError, UnavailableError } from "../../services/bus/refusals.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { heartbeatSubject } from "../../services/bus/subjects.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { startRegistryService } from "../../services/registry/service.ts";
import { startRelayService } from "../../services/relay/service.ts";
import { createLog } from "../../services/runtime/log.ts";
import type { Service, ServiceDeps } from "../../services/runtime/service.ts";
import { startSettlementService } from "../../services/settlement/service.ts";
import { emvcoSettings } from "../support/emvco-settings.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import { cloneDatabase, startNats } from "../support/servers.ts";
import { waitFor } from "../support/wait-for.ts";
import { type KillableProcess, startKillable } from "./killable-process.ts";
import { followLog, type LogReader } from "./log-reader.ts";

export const ACCOUNT = "M-1";
const CALLBACK_SECRET = "the-secret-of-the-callbacks-in-this-test";
/** Longer than the take-over of a dead host, and longer than the start of a process on a busy machine. */
const ANSWER_WITHIN_MS = 60_000;
const ATTEMPT_MS = 2_000;

/** A filial: a station with its people, a live companion, a provider config and open orders. */
export interface Filial {
  readonly stationId: number;
  readonly organizationId: number;
  readonly configId: number;
  readonly secret: string;
  readonly currency: string;
  readonly companionId: number;
  readonly owner: Caller;
  readonly operator: Caller;
  readonly cashiers: readonly [Caller, Caller];
  readonly orders: readonly { readonly orderId: number; readonly amountMinor: number }[];
  /** The config of another filial that has the same merchant account. */
  twin?: Pick<Filial, "configId" | "secret">;
}

export interface FilialOptions {
  readonly currency: string;
  readonly amountsMinor: readonly number[];
  /** Another filial of this filial's organization, with a config of the same merchant account. */
  readonly twinOf?: Filial | undefined;
}

type AnyOperation = Operation<z.ZodType, z.ZodType>;

export interface MoneyWorld {
  readonly bus: Bus;
  readonly database: Database;
  readonly log: LogReader;
  readonly hosts: readonly [KillableProcess, KillableProcess];
  readonly providers: KillableProcess;
  openFilial(options: FilialOptions): Promise<Filial>;
  /** Sends a request to a service. Throws `RefusedError` and `UnavailableError`. */
  ask<TOperation extends AnyOperation>(
    operation: TOperation,
    request: SentRequestOf<TOperation>,
    timeoutMs?: number,
  ): Promise<ReplyOf<TOperation>>;
  /** Like a client that repeats its requests, sends a station a command with one key until it has an answer. */
  command(stationId: number, request: StationRequest): Promise<StationResponse>;
  stop(): Promise<void>;
}

export async function startMoneyWorld(): Promise<MoneyWorld> {
  const [nats, testDatabase] = await Promise.all([startNats(), cloneDatabase()]);
  const logger = createLog({ service: "test", level: "silent" });
  const bus = await connectBus({ url: nats.url, name: "test", log: logger });
  await prepareBus(nats.url, testDatabase.url);
  const settings = { natsUrl: nats.url, databaseUrl: testDatabase.url, logLevel: "silent" } as const;
  const shared: ServiceDeps = { bus, logs: ONE_LOG, log: logger, settings, environment: {} };
  const starts = [startSettlementService, startRegistryService, startAuditService, startRelayService];
  const services: Service[] = [];
  for (const start of starts) services.push(await start(shared));
  const database = openDatabase({ url: testDatabase.url, maxConnections: 6 });
  await slowDownSomeWrites(database);
  const onBus = { NATS_URL: nats.url, DEVICE_SILENCE_MS: "3600000", STATION_LEASE_MS: "3600000" };
  const withDatabase = { ...onBus, DATABASE_URL: testDatabase.url, PROVIDER_SECRETS_KEY: newKey() };
  const [first, second, providers] = await Promise.all([
    startKillable(["stations"], onBus),
    startKillable(["stations"], onBus),
    startKillable(["providers"], withDatabase),
  ]);
  const log = await followLog(bus);

  const ask: MoneyWorld["ask"] = (operation, request, timeoutMs) =>
    call(bus.nc, operation, request, timeoutMs) as Promise<ReplyOf<typeof operation>>;
  const command: MoneyWorld["command"] = (stationId, request) => insist(() => askOnce(bus, stationId, request));
  return {
    bus,
    database,
    log,
    hosts: [first, second],
    providers,
    ask,
    command,
    openFilial: (options) => openFilial({ bus, database, log, ask, command }, options),
    async stop() {
      await Promise.all([first.kill9(), second.kill9(), providers.stop()]);
      await log.stop();
      for (const service of services.toReversed()) await service.stop();
      await closeDatabase(database);
      await bus.close();
      await Promise.all([nats.stop(), testDatabase.drop()]);
    },
  };
}

const newKey = (): string => randomBytes(32).toString("base64url");

const askOnce = (bus: Bus, stationId: number, request: StationRequest): Promise<StationResponse> =>
  askStation(bus.nc, stationId, request, { timeoutMs: ATTEMPT_MS });

/** Repeats a request that was not answered, or that was refused because of load. */
export async function insist<T>(attempt: () => Promise<T>, withinMs = ANSWER_WITHIN_MS): Promise<T> {
  const untilMs = Date.now() + withinMs;
  const timeout = new Error(`Not answered within ${withinMs} ms.`);
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      const isOver = error instanceof RefusedError && !["busy", "unavailable"].includes(error.refusal.code);
      if (isOver || !(error instanceof RefusedError || error instanceof UnavailableError)) throw error;
      if (Date.now() > untilMs) throw Object.assign(timeout, { cause: error });
    }
    await delay(50);
  }
}

/**
 * At random, the database stores a provider's answer slowly. Then a fast guest has paid before the station knows its QR. The
 * same happens for a sale, so that a host can be killed during a call of the seam.
 */
async function slowDownSomeWrites(database: Database): Promise<void> {
  await database.unsafe(`
    create function wait_now_and_then() returns trigger language plpgsql as $$
    begin
      if random() < 0.3 then perform pg_sleep(0.15); end if;
      return null;
    end $$;
    create trigger provider_payments_slow_answer before update of qr_payload on provider_payments
      for each statement execute function wait_now_and_then();
    create trigger transactions_slow before insert on transactions
      for each statement execute function wait_now_and_then();`);
}

let people = 0;
let commands = 0;

type Parts = Pick<MoneyWorld, "bus" | "database" | "log" | "ask" | "command">;

async function openFilial(parts: Parts, { currency, amountsMinor, twinOf }: FilialOptions): Promise<Filial> {
  const [row] = await parts.database<[{ organization_id: number; filial_id: number; station_id: number }]>`
    with known as (select ${twinOf?.organizationId ?? null}::bigint as organization_id),
    opened as (
      insert into organizations (name) select 'Organization' from known where organization_id is null
      returning organization_id),
    o as (select coalesce(known.organization_id, opened.organization_id) as organization_id
      from known left join opened on true),
    f as (insert into filials (organization_id, name) select organization_id, 'Filial' from o returning organization_id, filial_id)
    insert into stations (organization_id, filial_id, name, currency, sandbox)
    select organization_id, filial_id, 'Counter', ${currency}, true from f
    returning organization_id, filial_id, station_id`;
  const { organization_id: organizationId, filial_id: filialId, station_id: stationId } = row;
  const person = (role: Caller["role"], permission: Caller["permissions"][number], name: string): Caller => {
    people += 1;
    return { userId: people, name, organizationId, role, permissions: [permission] };
  };
  const send = async (actor: StationRequest["actor"], command: RequestedCommand): Promise<void> => {
    commands += 1;
    const { reply } = await parts.command(stationId, { commandId: `filial:${commands}`, actor, command });
    if (!reply.ok) throw new Error(`The filial could not be opened: ${JSON.stringify(reply)}`);
  };
  const registry = { kind: "registry", id: 0 } as const;
  const station = { organizationId, filialId, name: "Counter", currency, status: "active", revision: 1 } as const;
  await send(registry, { type: "station_put", stationId, station });
  const owner = person("owner", "organization.manage", "Olga");
  const [{ device_id: companionId }] = await parts.database<[{ device_id: number }]>`
    insert into devices (organization_id, station_id, name, kind, capabilities, status)
    values (${organizationId}, ${stationId}, 'Terminal', 'smart_pos_companion', '{handoff_present,outcome_report}', 'active')
    returning device_id`;
  const device = {
    deviceId: companionId,
    name: "Terminal",
    kind: "smart_pos_companion",
    capabilities: ["handoff_present", "outcome_report"],
    status: "active",
    handoffTarget: "",
    revision: 1,
  } as const;
  await send(registry, { type: "device_put", device });
  await parts.bus.js.publish(
    heartbeatSubject(stationId, companionId),
    JSON.stringify({ atMs: Date.now(), summary: {} }),
  );
  // The two configs of one merchant account have different secrets.
  const secret = twinOf === undefined ? CALLBACK_SECRET : `${CALLBACK_SECRET}-of-the-twin`;
  const { config } = await insist(() =>
    parts.ask(createProviderConfig, {
      caller: owner,
      filialId,
      kind: "emvco_generic",
      mode: "test",
      name: "Scheme",
      settings: emvcoSettings(ACCOUNT),
      secrets: { callback_secret: secret },
    }),
  );
  const cashiers = [person("cashier", "payments.collect", "Ada"), person("cashier", "payments.collect", "Bo")] as const;
  const orders = await Promise.all(
    amountsMinor.map(async (amountMinor) => {
      const lines = [{ name: "Soup", quantity: 1, unitAmountMinor: String(amountMinor) }];
      const { order } = await parts.ask(openOrder, { caller: cashiers[0], stationId, lines });
      return { orderId: order.orderId, amountMinor };
    }),
  );
  await send({ kind: "cashier", id: cashiers[0].userId, name: "Ada" }, { type: "lease_acquire" });
  await waitFor("the station knows its provider and its companion", () => {
    const types = parts.log.eventsOf(stationId).map(({ type }) => type);
    return types.includes("provider_changed") && types.includes("device_online");
  });
  const operator = person("reconciliation_operator", "reconciliation.manage", "Rosa");
  const { configId } = config;
  const filial: Filial = {
    stationId,
    organizationId,
    configId,
    secret,
    currency,
    companionId,
    owner,
    operator,
    cashiers,
    orders,
  };
  if (twinOf !== undefined) Object.assign(filial, { twin: twinOf });
  if (twinOf !== undefined) twinOf.twin = filial;
  return filial;
}
