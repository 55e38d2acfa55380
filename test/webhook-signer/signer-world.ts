/** The webhook signer on real NATS and PostgreSQL, with a real TLS target, and owners who have robots. */

import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { z } from "zod";
import { startServiceProcess } from "../../deploy/service-process.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import type { Caller } from "../../services/bus/messages/caller.ts";
import type { ConsumerCaller } from "../../services/bus/messages/consumers.ts";
import type { RoboticsEvent } from "../../services/bus/messages/robotics-events.ts";
import {
  type Delivery,
  type DeliveryStatus,
  getWebhookDelivery,
  listConsumerWebhookDeliveries,
} from "../../services/bus/messages/webhook-deliveries.ts";
import { registerWebhookEndpoint } from "../../services/bus/messages/webhook-endpoints.ts";
import { call, type Operation, type ReplyOf, type SentRequestOf } from "../../services/bus/operation.ts";
import { roboticsEventSubject } from "../../services/bus/subjects.ts";
import { filialKey, insertOutbox } from "../../services/db/outbox.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { startRelayService } from "../../services/relay/service.ts";
import { createLog } from "../../services/runtime/log.ts";
import type { Service, ServiceDeps } from "../../services/runtime/service.ts";
import { SIGNER_LIMITS } from "../../services/webhook-signer/limits.ts";
import { startWebhookSignerService } from "../../services/webhook-signer/service.ts";
import { HOLDS_LOCKS } from "../support/held-locks.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import { cloneDatabase, startNats, type TestServer } from "../support/servers.ts";
import { stall } from "../support/stall.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { waitFor } from "../support/wait-for.ts";
import { type Behaviour, type Receiver, startReceiver } from "./receiver.ts";

export { refusalOf } from "../support/refusal-of.ts";
export { waitFor };

const MAIN = join(import.meta.dirname, "..", "..", "services", "main.ts");
const WITH_LIMITS = join(import.meta.dirname, "programs", "signer-with-limits.ts");

/**
 * Settings of a signer whose leases end after 3 s instead of 10, for tests in which another process takes over. The test
 * "a killed process: another one continues its work within half a minute" has the product's leases.
 */
export const SHORT_LEASES = {
  SIGNER_LIMITS: JSON.stringify({ ownerLeaseMs: 3_000, leaseMarginMs: 500, ownerTurnMs: 300 }),
};

export interface Fleet {
  readonly organizationId: number;
  readonly filialId: number;
  readonly consumerId: number;
  readonly owner: Caller;
  readonly consumer: ConsumerCaller;
}

export interface SignerProcess {
  readonly pid: number;
  readonly logFile: string;
  signal(signal: NodeJS.Signals): void;
  /** Stops it at its current step; returns when it has stopped. */
  freeze(): void;
  kill9(): Promise<void>;
  stop(): Promise<void>;
}

type AnyOperation = Operation<z.ZodType, z.ZodType>;

export interface SignerWorld {
  readonly bus: Bus;
  readonly nats: TestServer;
  readonly database: Database;
  readonly databaseUrl: string;
  readonly receiver: Receiver;
  readonly environment: NodeJS.ProcessEnv;
  readonly serviceDeps: ServiceDeps;
  ask<TOperation extends AnyOperation>(
    operation: TOperation,
    request: SentRequestOf<TOperation>,
  ): Promise<ReplyOf<TOperation>>;
  /** A fleet of a fresh organization. */
  openFleet(options?: { readonly mode?: "test" | "live" }): Promise<Fleet>;
  /** Another fleet at the same filial. */
  addConsumer(fleet: Fleet): Promise<Fleet>;
  addEndpoint(fleet: Fleet, path: string): Promise<{ readonly endpointId: number; readonly secret: string }>;
  /** Commits an event as the robotics service does, for the relay; returns the event's id. */
  emit(
    fleet: Fleet,
    event?: Partial<Pick<RoboticsEvent, "eventType">> & { readonly expiresInMs?: number },
  ): Promise<number>;
  /** Commits events of these fleets in turn and publishes them like the relay, but much faster. */
  emitMany(fleets: readonly Fleet[], count: number): Promise<void>;
  /** A consumer's deliveries from the beginning. */
  deliveries(fleet: Fleet): Promise<readonly Delivery[]>;
  /** Waits until at least `count` of a consumer's deliveries have the status, and returns all that have it. */
  untilStatus(fleet: Fleet, status: DeliveryStatus, count?: number): Promise<readonly Delivery[]>;
  /** The number of delivered deliveries of all consumers, from PostgreSQL: a request on the bus may reach a stalled process. */
  countDelivered(): Promise<number>;
  ownDelivery(fleet: Fleet, deliveryId: number): Promise<ReplyOf<typeof getWebhookDelivery>>;
  /** Makes all deliveries of a consumer due now. */
  hurry(fleet: Fleet): Promise<void>;
  /** Stops all deliveries to these organizations, so that they take no slots from the next test. */
  pauseEndpoints(of: readonly Fleet[]): Promise<void>;
  addSigner(environment?: NodeJS.ProcessEnv): Promise<Service>;
  addSignerProcess(environment?: NodeJS.ProcessEnv): Promise<SignerProcess>;
  addRelay(): Promise<Service>;
  stop(): Promise<void>;
}

export async function startSignerWorld(options: { readonly signers?: number } = {}): Promise<SignerWorld> {
  const folder = temporaryFolder("webhooks");
  const [nats, testDatabase, receiver] = await Promise.all([startNats(), cloneDatabase(), startReceiver()]);
  const caFile = join(folder.path, "ca.pem");
  writeFileSync(caFile, receiver.authority.cert);
  const log = createLog({ service: "test", level: process.env["TEST_LOG"] === "1" ? "info" : "silent" });
  const bus = await connectBus({ url: nats.url, name: "test", log });
  await prepareBus(nats.url, testDatabase.url);
  const settings = { natsUrl: nats.url, databaseUrl: testDatabase.url, logLevel: "silent" } as const;
  const environment: NodeJS.ProcessEnv = {
    WEBHOOK_SECRETS_KEY: randomBytes(32).toString("base64url"),
    WEBHOOK_ALLOW_LOOPBACK: "true",
    WEBHOOK_CA_FILE: caFile,
  };
  const database = openDatabase({ ...HOLDS_LOCKS, url: testDatabase.url, maxConnections: 4 });
  const serviceDeps: ServiceDeps = { bus, logs: ONE_LOG, log, settings, environment };
  const started: { stop(): Promise<void> }[] = [];
  let processes = 0;
  let tasks = 0;

  const ask: SignerWorld["ask"] = (operation, request) =>
    call(bus.nc, operation, request, 20_000) as Promise<ReplyOf<typeof operation>>;
  const keep = <T extends { stop(): Promise<void> }>(service: T): T => {
    let stopping: Promise<void> | undefined;
    const once = { ...service, stop: () => (stopping ??= service.stop()) };
    started.push(once);
    return once;
  };
  const fleetOf = (
    row: { organization_id: number; filial_id: number; consumer_id: number },
    mode: "test" | "live",
  ): Fleet => {
    const { organization_id: organizationId, filial_id: filialId, consumer_id: consumerId } = row;
    return {
      organizationId,
      filialId,
      consumerId,
      owner: { userId: 1, name: "Olga", organizationId, role: "owner", permissions: ["organization.manage"] },
      consumer: { consumerId, name: "Fleet", organizationId, filialId, mode },
    };
  };
  const deliveries: SignerWorld["deliveries"] = async ({ consumer }) =>
    (await ask(listConsumerWebhookDeliveries, { consumer, limit: 500 })).deliveries;
  const addSigner: SignerWorld["addSigner"] = async (more = {}) =>
    keep(await startWebhookSignerService({ ...serviceDeps, environment: { ...environment, ...more } }));
  for (let at = 0; at < (options.signers ?? 1); at += 1) await addSigner();

  return {
    bus,
    nats,
    database,
    databaseUrl: testDatabase.url,
    receiver,
    environment,
    serviceDeps,
    ask,
    async openFleet({ mode = "test" } = {}) {
      const [row] = await database<[{ organization_id: number; filial_id: number; consumer_id: number }]>`
        with o as (insert into organizations (name) values ('Organization') returning organization_id),
        f as (insert into filials (organization_id, name) select organization_id, 'Filial' from o
          returning organization_id, filial_id)
        insert into robotics_consumers (organization_id, filial_id, name, mode, credential_hash)
        select organization_id, filial_id, 'Fleet', ${mode}, ${randomBytes(32)} from f
        returning organization_id, filial_id, consumer_id`;
      return fleetOf(row, mode);
    },
    async addConsumer({ organizationId, filialId }) {
      const [row] = await database<[{ organization_id: number; filial_id: number; consumer_id: number }]>`
        insert into robotics_consumers (organization_id, filial_id, name, mode, credential_hash)
        values (${organizationId}, ${filialId}, 'Fleet', 'test', ${randomBytes(32)})
        returning organization_id, filial_id, consumer_id`;
      return fleetOf(row, "test");
    },
    async addEndpoint({ owner: caller, consumerId }, path) {
      const { endpoint, secret } = await ask(registerWebhookEndpoint, {
        caller,
        consumerId,
        url: receiver.url(path),
      });
      return { endpointId: endpoint.endpointId, secret };
    },
    async emit(fleet, { eventType = "serving_task.cancelled", expiresInMs = 600_000 } = {}) {
      tasks += 1;
      const event = eventOf(fleet, { eventType, taskId: tasks, expiresInMs });
      return await database.begin((sql) =>
        insertOutbox(sql, { key: filialKey(fleet.filialId), kind: "robotics_event", event }),
      );
    },
    async emitMany(fleets, count) {
      const BATCH = 500;
      for (let at = 0; at < count; at += BATCH) {
        const batch = Array.from({ length: Math.min(BATCH, count - at) }, (_, index) => {
          tasks += 1;
          const fleet = fleets[(at + index) % fleets.length];
          if (fleet === undefined) throw new Error("There are no fleets.");
          return {
            fleet,
            event: eventOf(fleet, { eventType: "serving_task.cancelled", taskId: tasks, expiresInMs: 0 }),
          };
        });
        const rows = batch.map(({ fleet, event }) => ({ key: filialKey(fleet.filialId), payload: { event } }));
        const ids = await database<{ outbox_id: number }[]>`
          insert into outbox (key, kind, payload, delivered_at)
          select r.key, 'robotics_event', r.payload, now()
          from jsonb_to_recordset(${database.json(rows)}) as r (key text, payload jsonb)
          returning outbox_id`;
        await Promise.all(
          batch.map(({ fleet, event }, index) => {
            const published = { eventId: ids[index]?.outbox_id, event };
            return bus.js.publish(roboticsEventSubject(fleet.filialId), JSON.stringify(published));
          }),
        );
      }
    },
    deliveries,
    untilStatus: (fleet, status, count = 1) =>
      waitFor(`${count} deliveries that are ${status}`, async () => {
        const found = (await deliveries(fleet)).filter((one) => one.status === status);
        return found.length >= count && found;
      }),
    async countDelivered() {
      const [row] = await database<[{ count: number }]>`
        select count(*)::int as count from webhook_deliveries where status = 'delivered'`;
      return row.count;
    },
    ownDelivery: ({ owner: caller }, deliveryId) => ask(getWebhookDelivery, { caller, deliveryId }),
    async hurry({ consumerId }) {
      await database`
        update webhook_deliveries set due_at = now()
        where consumer_id = ${consumerId} and status = 'pending'`;
    },
    async pauseEndpoints(of) {
      await database`
        update webhook_endpoints set status = 'paused', generation = generation + 1
        where organization_id = any(${of.map((fleet) => fleet.organizationId)}::bigint[])`;
    },
    addSigner,
    async addSignerProcess(more = {}) {
      processes += 1;
      const logFile = join(folder.path, `signer-${processes}.log`);
      const { child } = await startServiceProcess({
        name: "webhook-signer",
        script: "SIGNER_LIMITS" in more ? WITH_LIMITS : MAIN,
        args: ["webhook-signer"],
        environment: {
          ...process.env,
          NATS_URL: nats.url,
          DATABASE_URL: testDatabase.url,
          LOG_LEVEL: "debug",
          ...environment,
          ...more,
        },
        logFile,
      });
      const stoppable = keep({ stop: async () => void (await child.stop()) });
      return {
        ...stoppable,
        pid: child.pid,
        logFile,
        signal: (signal) => void child.process.kill(signal),
        freeze: () => stall(child.pid),
        kill9: async () => void (await child.kill()),
      };
    },
    addRelay: async () => keep(await startRelayService(serviceDeps)),
    async stop() {
      for (const service of started.toReversed()) await service.stop();
      await closeDatabase(database);
      await bus.close();
      await receiver.stop();
      await Promise.all([nats.stop(), testDatabase.drop()]);
      folder.remove();
    },
  };
}

function eventOf(
  { organizationId, filialId, consumerId }: Fleet,
  { eventType, taskId, expiresInMs }: { eventType: RoboticsEvent["eventType"]; taskId: number; expiresInMs: number },
): RoboticsEvent {
  const createdAt = new Date().toISOString();
  const facts = { organizationId, filialId, consumerId, createdAt };
  const task = { task_id: taskId, display_number: taskId, leg: "kitchen_to_table" } as const;
  if (eventType === "serving_task.offered") {
    const expires_at = new Date(Date.now() + expiresInMs).toISOString();
    return { ...facts, eventType, payload: { ...task, status: "offered", expires_at } };
  }
  if (eventType === "serving_task.cancelled" || eventType === "serving_task.expired") {
    const status = eventType === "serving_task.cancelled" ? "cancelled" : "expired";
    return { ...facts, eventType, payload: { ...task, status } };
  }
  return { ...facts, consumerId: null, eventType, payload: { filial_id: filialId } };
}

/** The deliveries of a fleet with an attempt on record that began later than this. */
export async function begunAfter({ database }: SignerWorld, { consumerId }: Fleet, atMs: number): Promise<Set<number>> {
  const rows = await database<{ delivery_id: number }[]>`
    select delivery_id from webhook_attempts join webhook_deliveries using (delivery_id)
    where consumer_id = ${consumerId} and started_at > ${new Date(atMs)}`;
  return new Set(rows.map((row) => row.delivery_id));
}

/**
 * Delays the answers of these paths. Returns a function that sends them, once every slot of each path is taken and the
 * sender has nothing to write.
 */
export async function holdAnswers(receiver: Receiver, paths: readonly string[]): Promise<() => void> {
  const { promise: after, resolve } = Promise.withResolvers<void>();
  const held = new Map(paths.map((path) => [path, 0]));
  const hold: Behaviour = ({ path }) => {
    held.set(path, (held.get(path) ?? 0) + 1);
    return { status: 200, after };
  };
  for (const path of paths) receiver.behave(path, hold);
  const areTaken = (): boolean => [...held.values()].every((count) => count === SIGNER_LIMITS.inFlightPerEndpoint);
  await waitFor("every slot to be taken", areTaken);
  return resolve;
}
