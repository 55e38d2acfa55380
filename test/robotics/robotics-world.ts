/**
 * The robotics service on real NATS and PostgreSQL, with the relay that publishes its events. A place is an organization with
 * a filial and an owner.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { z } from "zod";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import type { Caller } from "../../services/bus/messages/caller.ts";
import * as consumerMessages from "../../services/bus/messages/consumers.ts";
import {
  type PublishedRoboticsEvent,
  publishedRoboticsEventSchema,
  type RoboticsEvent,
} from "../../services/bus/messages/robotics-events.ts";
import * as taskMessages from "../../services/bus/messages/serving-tasks.ts";
import {
  call,
  type Operation,
  type ReplyOf,
  type RequestOf,
  type SentRequestOf,
} from "../../services/bus/operation.ts";
import { ROBOTICS_EVENTS } from "../../services/bus/streams.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { startRelayService } from "../../services/relay/service.ts";
import { startRoboticsService } from "../../services/robotics/service.ts";
import { createLog } from "../../services/runtime/log.ts";
import type { Service, ServiceDeps } from "../../services/runtime/service.ts";
import { HOLDS_LOCKS } from "../support/held-locks.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { cloneDatabase, startNats } from "../support/servers.ts";

export { refusalOf } from "../support/refusal-of.ts";

type AnyOperation = Operation<z.ZodType, z.ZodType>;

export interface Place {
  readonly organizationId: number;
  readonly filialId: number;
  readonly owner: Caller;
  /** A user who may not manage the organization. */
  readonly cashier: Caller;
}

export interface Fleet {
  readonly consumerId: number;
  readonly credential: string;
  readonly caller: consumerMessages.ConsumerCaller;
}

export interface RoboticsWorld {
  readonly bus: Bus;
  readonly database: Database;
  openPlace(): Promise<Place>;
  /** Adds a consumer at the place. */
  addFleet(place: Place): Promise<Fleet>;
  ask<TOperation extends AnyOperation>(
    operation: TOperation,
    request: SentRequestOf<TOperation>,
  ): Promise<ReplyOf<TOperation>>;
  /** Offers soup for table 12. */
  offer(
    place: Place,
    fleet: Fleet,
    more?: Partial<RequestOf<typeof taskMessages.offerServingTask>>,
  ): Promise<taskMessages.ServingTask>;
  /** The events of a filial in the outbox, in order, delivered or not. */
  events(filialId: number): Promise<RoboticsEvent[]>;
  /** The stream's messages for a filial. Resolves once there are that many. */
  published(filialId: number, count: number): Promise<PublishedRoboticsEvent[]>;
  /** Moves a task's deadline to this many milliseconds ago. */
  makeOverdue(taskId: number, byMs?: number): Promise<void>;
  /** Starts one more process of the service beside the first. */
  addService(environment?: NodeJS.ProcessEnv): Promise<Service>;
  stop(): Promise<void>;
}

export async function startRoboticsWorld(): Promise<RoboticsWorld> {
  const [nats, testDatabase] = await Promise.all([startNats(), cloneDatabase()]);
  const log = createLog({ service: "test", level: "silent" });
  const bus = await connectBus({ url: nats.url, name: "test", log });
  await ensureStreams(bus, { replicas: 1, logs: 1 });
  const settings = { natsUrl: nats.url, databaseUrl: testDatabase.url, logLevel: "silent" } as const;
  const shared: ServiceDeps = { bus, logs: ONE_LOG, log, settings, environment: {} };
  const services: Service[] = [await startRelayService(shared), await startRoboticsService(shared)];
  const database = openDatabase({ ...HOLDS_LOCKS, url: testDatabase.url, maxConnections: 12 });
  let people = 0;

  const ask: RoboticsWorld["ask"] = (operation, request) =>
    call(bus.nc, operation, request, 10_000) as Promise<ReplyOf<typeof operation>>;

  return {
    bus,
    database,
    ask,
    async openPlace() {
      const [row] = await database<[{ organization_id: number; filial_id: number }]>`
        with o as (insert into organizations (name) values ('Organization') returning organization_id)
        insert into filials (organization_id, name) select organization_id, 'Filial' from o
        returning organization_id, filial_id`;
      const { organization_id: organizationId, filial_id: filialId } = row;
      const person = (role: Caller["role"], permission: Caller["permissions"][number], name: string): Caller => {
        people += 1;
        return { userId: people, name, organizationId, role, permissions: [permission] };
      };
      return {
        organizationId,
        filialId,
        owner: person("owner", "organization.manage", "Olga"),
        cashier: person("cashier", "payments.collect", "Ada"),
      };
    },
    async addFleet({ organizationId, filialId, owner: caller }) {
      const made = await ask(consumerMessages.createRoboticsConsumer, {
        caller,
        filialId,
        name: "Fleet",
        mode: "test",
      });
      const { consumerId, name, mode } = made.consumer;
      const { credential } = made;
      return { consumerId, credential, caller: { consumerId, name, organizationId, filialId, mode } };
    },
    async offer({ owner: caller }, { consumerId }, more = {}) {
      const { task } = await ask(taskMessages.offerServingTask, {
        caller,
        consumerId,
        leg: "kitchen_to_table",
        manifest: [{ name: "Soup", quantity: 2 }],
        destination: { name: "Table 12" },
        validForMs: 60_000,
        ...more,
      });
      return task;
    },
    async events(filialId) {
      const rows = await database<{ payload: { event: RoboticsEvent } }[]>`
        select payload from outbox where key = ${`filial.${filialId}`} and kind = 'robotics_event' order by outbox_id`;
      return rows.map((row) => row.payload.event);
    },
    async published(filialId, count) {
      const found = new Map<number, PublishedRoboticsEvent>();
      for (const deadlineMs = Date.now() + 30_000; Date.now() < deadlineMs; await delay(20)) {
        const { state } = await bus.jsm.streams.info(ROBOTICS_EVENTS.name);
        for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq += 1) {
          if (found.has(seq)) continue;
          const stored = await bus.jsm.streams.getMessage(ROBOTICS_EVENTS.name, { seq });
          if (stored !== null) found.set(seq, publishedRoboticsEventSchema.parse(stored.json()));
        }
        const own = [...found.values()].filter(({ event }) => event.filialId === filialId);
        if (own.length >= count) return own;
      }
      throw new Error(`The stream does not hold ${count} events of filial ${filialId} in time.`);
    },
    async makeOverdue(taskId, byMs = 0) {
      await database`
        update serving_tasks set expires_at = clock_timestamp() - ${byMs}::float8 * interval '1 millisecond'
        where task_id = ${taskId}`;
    },
    async addService(environment = {}) {
      const service = await startRoboticsService({ ...shared, environment });
      services.push(service);
      return service;
    },
    async stop() {
      for (const service of services.toReversed()) await service.stop();
      await closeDatabase(database);
      await bus.close();
      await Promise.all([nats.stop(), testDatabase.drop()]);
    },
  };
}
