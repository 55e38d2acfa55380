/** The world of the webhook bench and the soak: a signer, a relay, a TLS target, and owners with endpoints. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { requestHeaders } from "../../services/bus/deadline.ts";
import type { Caller } from "../../services/bus/messages/caller.ts";
import type { RoboticsEvent } from "../../services/bus/messages/robotics-events.ts";
import { changeWebhookEndpoint, registerWebhookEndpoint } from "../../services/bus/messages/webhook-endpoints.ts";
import { call } from "../../services/bus/operation.ts";
import { roboticsEventSubject } from "../../services/bus/subjects.ts";
import { filialKey, insertOutbox } from "../../services/db/outbox.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { announcer } from "../../services/robotics/events.ts";
import { forRequest } from "../../services/runtime/log.ts";
import { createAuthority } from "../support/certificates.ts";
import type { BenchProcess, BenchWorld } from "./bench-world.ts";

/** The longest wait for a state of the deliveries. */
const TIMEOUT_MS = 120_000;

export interface WebhookOwner {
  readonly caller: Caller;
  readonly filialId: number;
  readonly consumerId: number;
  readonly endpointId: number;
}

export interface WebhookWorld {
  readonly database: Database;
  readonly signer: BenchProcess;
  readonly receiver: BenchProcess;
  readonly url: string;
  readonly caFile: string;
  readonly owners: readonly WebhookOwner[];
  /** The id and the time of each delivery that arrived since the last call. */
  arrived(): Promise<readonly (readonly [number, number])[]>;
  setStatus(status: "active" | "paused"): Promise<void>;
  /** Stores events as delivered and publishes them on the bus, in place of the relay. */
  publish(count: number): Promise<void>;
  /** Commits one event for the relay. Returns its id. */
  emit(index: number): Promise<number>;
  countOf(status: string): Promise<number>;
  /** Resolves when at least `count` deliveries have the status. */
  until(status: string, count: number): Promise<void>;
  /** Resolves when no delivery is pending. It counts nothing, because counts would take PostgreSQL's time from the signer. */
  untilNonePending(): Promise<void>;
  stop(): Promise<void>;
}

export async function startWebhookWorld(world: BenchWorld, plan: { readonly owners: number }): Promise<WebhookWorld> {
  const folder = mkdtempSync(join(tmpdir(), "device-payments-webhooks-"));
  const authority = createAuthority();
  const { cert, key } = authority.issue({ names: ["localhost"] });
  const caFile = join(folder, "ca.pem");
  const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(caFile, authority.cert);
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key, { mode: 0o600 });
  const receiver = await world.startProcess("webhook-receiver", "test/bench/load/webhook-receiver.ts", [
    certFile,
    keyFile,
  ]);
  const url = `https://localhost:${String(receiver.ready["port"])}/hook`;
  const databaseUrl = await world.databaseUrl();
  const database = openDatabase({ url: databaseUrl, maxConnections: 4 });
  const environment = {
    DATABASE_URL: databaseUrl,
    WEBHOOK_SECRETS_KEY: randomBytes(32).toString("base64url"),
    WEBHOOK_ALLOW_LOOPBACK: "true",
    WEBHOOK_CA_FILE: caFile,
  };
  const signer = await world.startProcess("webhook-signer", "services/main.ts", ["webhook-signer"], environment);
  const relay = await world.startProcess("relay", "services/main.ts", ["relay"], environment);
  const owners: WebhookOwner[] = [];
  for (let at = 0; at < plan.owners; at += 1) owners.push(await addOwner({ world, database, url }));
  // Notifies the relay after a commit, as the robotics service does, so that the relay publishes the event at once.
  const announce = announcer(world.bus.nc, {
    warn: (reason: unknown) => void process.stderr.write(`${JSON.stringify(reason)}\n`),
  });
  let lastTaskId = 0;
  const nextEvent = (index: number): { readonly owner: WebhookOwner; readonly event: RoboticsEvent } => {
    const owner = owners[index % owners.length];
    if (owner === undefined) throw new Error("There are no owners.");
    lastTaskId += 1;
    return { owner, event: cancelledEvent(owner, lastTaskId) };
  };
  const countOf = async (status: string): Promise<number> => {
    const [row] = await database<[{ count: number }]>`
      select count(*)::int as count from webhook_deliveries where status = ${status}`;
    return row.count;
  };
  const waitUntil = async (condition: string, isTrue: () => Promise<boolean>): Promise<void> => {
    const endMs = Date.now() + TIMEOUT_MS;
    while (!(await isTrue())) {
      if (Date.now() > endMs) throw new Error(`Not true within ${TIMEOUT_MS} ms: ${condition}.`);
      await delay(50);
    }
  };
  return {
    database,
    signer,
    receiver,
    url,
    caFile,
    owners,
    arrived: async () => (await receiver.ask<{ arrived: [number, number][] }>()).arrived,
    async setStatus(status) {
      await Promise.all(
        owners.map(({ caller, endpointId }) =>
          call(world.bus.nc, changeWebhookEndpoint, { caller, endpointId, status }),
        ),
      );
    },
    async publish(count) {
      const BATCH = 500;
      const headers = forRequest("request-of-the-bench", requestHeaders);
      for (let at = 0; at < count; at += BATCH) {
        const batch = Array.from({ length: Math.min(BATCH, count - at) }, (_, index) => nextEvent(at + index));
        const rows = batch.map(({ owner, event }) => ({ key: filialKey(owner.filialId), payload: { event } }));
        const ids = await database<{ outbox_id: number }[]>`
          insert into outbox (key, kind, payload, delivered_at)
          select r.key, 'robotics_event', r.payload, now()
          from jsonb_to_recordset(${database.json(rows)}) as r (key text, payload jsonb)
          returning outbox_id`;
        await Promise.all(
          batch.map(({ owner, event }, index) => {
            const published = { eventId: ids[index]?.outbox_id, event };
            return world.bus.js.publish(roboticsEventSubject(owner.filialId), JSON.stringify(published), { headers });
          }),
        );
      }
    },
    async emit(index) {
      const { owner, event } = nextEvent(index);
      const row = { key: filialKey(owner.filialId), kind: "robotics_event", event } as const;
      const eventId = await database.begin((sql) => insertOutbox(sql, row));
      announce(owner.filialId);
      return eventId;
    },
    countOf,
    until: (status, count) =>
      waitUntil(`${count} deliveries are ${status}`, async () => (await countOf(status)) >= count),
    untilNonePending: () =>
      waitUntil("no delivery is pending", async () => {
        const [row] = await database<[{ is_pending: boolean }]>`
          select exists (select from webhook_deliveries where status = 'pending') as is_pending`;
        return !row.is_pending;
      }),
    async stop() {
      await signer.stop();
      await relay.stop();
      await receiver.stop();
      await closeDatabase(database);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function addOwner({
  world,
  database,
  url,
}: {
  readonly world: BenchWorld;
  readonly database: Database;
  readonly url: string;
}): Promise<WebhookOwner> {
  const [row] = await database<[{ organization_id: number; filial_id: number; consumer_id: number }]>`
    with o as (insert into organizations (name) values ('Bench') returning organization_id),
    f as (insert into filials (organization_id, name) select organization_id, 'Bench' from o
      returning organization_id, filial_id)
    insert into robotics_consumers (organization_id, filial_id, name, mode, credential_hash)
    select organization_id, filial_id, 'Fleet', 'test', ${randomBytes(32)} from f
    returning organization_id, filial_id, consumer_id`;
  const { organization_id: organizationId, filial_id: filialId, consumer_id: consumerId } = row;
  const caller: Caller = {
    userId: 1,
    name: "Olga",
    organizationId,
    role: "owner",
    permissions: ["organization.manage"],
  };
  const { endpoint } = await call(world.bus.nc, registerWebhookEndpoint, { caller, consumerId, url });
  return { caller, filialId, consumerId, endpointId: endpoint.endpointId };
}

function cancelledEvent(
  { caller: { organizationId }, filialId, consumerId }: WebhookOwner,
  taskId: number,
): RoboticsEvent {
  const payload = { task_id: taskId, display_number: taskId, leg: "kitchen_to_table", status: "cancelled" } as const;
  const createdAt = new Date().toISOString();
  return { organizationId, filialId, consumerId, createdAt, eventType: "serving_task.cancelled", payload };
}
