/**
 * A registry with a NATS server and a database only for one test file. Without `relay`, nothing is delivered: the barrier of
 * each reply shows that, and the outbox keeps the rows, so that a test can check them.
 */

import type { z } from "zod";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import type { Caller } from "../../services/bus/messages/caller.ts";
import { type Device, registerDevice } from "../../services/bus/messages/devices.ts";
import { enrollDevice, issueEnrollmentCode } from "../../services/bus/messages/enrollment-codes.ts";
import { createFilial, listFilials } from "../../services/bus/messages/filials.ts";
import { seedSandbox } from "../../services/bus/messages/sandbox-organization.ts";
import { createStation, type Station } from "../../services/bus/messages/stations.ts";
import { call, type Operation, type ReplyOf } from "../../services/bus/operation.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { startRegistryService } from "../../services/registry/service.ts";
import { startRelayService } from "../../services/relay/service.ts";
import { createLog } from "../../services/runtime/log.ts";
import type { Service, ServiceDeps } from "../../services/runtime/service.ts";
import { HOLDS_LOCKS } from "../support/held-locks.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import { refuseFlushes } from "../support/refuse-flushes.ts";
import { cloneDatabase, startNats } from "../support/servers.ts";

export { refusalOf } from "../support/refusal-of.ts";

/** Longer than in production, because a password hash takes long on a busy test machine. */
const ASK_TIMEOUT_MS = 20_000;
export const OWNER_PASSWORD = "owner of the sandbox";
export const CASHIER_PASSWORD = "cashier of the sandbox";

export interface RegistryFixture {
  readonly bus: Bus;
  readonly sql: Database;
  readonly databaseUrl: string;
  readonly natsUrl: string;
  readonly sandbox: ReplyOf<typeof seedSandbox>;
  /** Owner and cashier of the seeded sandbox, as the gateway names them in its requests. */
  readonly owner: Caller;
  readonly cashier: Caller;
  /** For tests that start further services in this process. */
  readonly serviceDeps: ServiceDeps;
  readonly ask: <TRequest extends z.ZodType, TReply extends z.ZodType>(
    operation: Operation<TRequest, TReply>,
    request: z.input<TRequest>,
  ) => Promise<z.infer<TReply>>;
  readonly stop: () => Promise<void>;
}

export async function startRegistry(
  options: { readonly relay?: boolean; readonly environment?: NodeJS.ProcessEnv } = {},
): Promise<RegistryFixture> {
  const [nats, database] = await Promise.all([startNats(), cloneDatabase()]);
  const log = createLog({ service: "test", level: "silent" });
  const bus = await connectBus({ url: nats.url, name: "test", log });
  await prepareBus(nats.url, database.url);
  const settings = { natsUrl: nats.url, databaseUrl: database.url, logLevel: "silent" } as const;
  const serviceDeps: ServiceDeps = { bus, logs: ONE_LOG, log, settings, environment: options.environment ?? {} };
  const services: Service[] = [await startRegistryService(serviceDeps)];
  if (options.relay !== true) await refuseFlushes(bus.nc);
  const ask: RegistryFixture["ask"] = (operation, request) => call(bus.nc, operation, request, ASK_TIMEOUT_MS);
  const passwords = { ownerPassword: OWNER_PASSWORD, cashierPassword: CASHIER_PASSWORD };
  const sandbox = await ask(seedSandbox, passwords);
  if (options.relay === true) services.push(await startRelayService(serviceDeps));
  const sql = openDatabase({ ...HOLDS_LOCKS, url: database.url, maxConnections: 2 });
  return {
    bus,
    sql,
    databaseUrl: database.url,
    natsUrl: nats.url,
    sandbox,
    owner: await callerOf(sql, sandbox.owner.email),
    cashier: await callerOf(sql, sandbox.cashier.email),
    serviceDeps,
    ask,
    stop: async () => {
      for (const service of services.toReversed()) await service.stop();
      await closeDatabase(sql);
      await bus.close();
      await Promise.all([nats.stop(), database.drop()]);
    },
  };
}

const PERMISSIONS = { owner: "organization.manage", cashier: "payments.collect" } as const;

export async function callerOf(sql: Database, email: string): Promise<Caller> {
  const [row] = await sql<[{ user_id: number; organization_id: number; name: string; role: "owner" | "cashier" }]>`
    select user_id, organization_id, name, role from users where email = ${email}`;
  const { user_id: userId, organization_id: organizationId, name, role } = row;
  return { userId, organizationId, name, role, permissions: [PERMISSIONS[role]] };
}

/** Another organization with another owner. */
export async function addOrganization(sql: Database, name: string): Promise<Caller> {
  const [organization] = await sql<[{ organization_id: number }]>`
    insert into organizations (name) values (${name}) returning organization_id`;
  const email = `owner@${name.toLowerCase().replaceAll(" ", "-")}.example`;
  await sql`
    insert into users (organization_id, email, name, role, password_hash)
    values (${organization.organization_id}, ${email}, ${`Owner of ${name}`}, 'owner', 'unused')`;
  return callerOf(sql, email);
}

/** A new station of the caller's organization, in its first filial. */
export async function newStation(fixture: RegistryFixture, caller = fixture.owner): Promise<Station> {
  const { filials } = await fixture.ask(listFilials, { caller });
  const filial = filials[0] ?? (await fixture.ask(createFilial, { caller, name: "First" })).filial;
  const request = { caller, filialId: filial.filialId, name: "Counter", currency: "EUR" };
  return (await fixture.ask(createStation, request)).station;
}

export async function newDevice(fixture: RegistryFixture, stationId: number, caller = fixture.owner): Promise<Device> {
  const request = { caller, stationId, name: "Companion", kind: "smart_pos_companion" as const };
  return (await fixture.ask(registerDevice, request)).device;
}

/** An open code for a pending device, as the owner sees it. */
export async function newCode(fixture: RegistryFixture, deviceId: number, caller = fixture.owner): Promise<string> {
  return (await fixture.ask(issueEnrollmentCode, { caller, deviceId })).code;
}

/** A device that has claimed its code. */
export async function newActiveDevice(
  fixture: RegistryFixture,
  stationId: number,
): Promise<{ readonly deviceId: number; readonly credential: string; readonly code: string }> {
  const { deviceId } = await newDevice(fixture, stationId);
  const code = await newCode(fixture, deviceId);
  const { credential } = await fixture.ask(enrollDevice, { address: "127.0.0.1", code });
  return { deviceId, credential, code };
}
