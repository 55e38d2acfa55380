/** What the webhook bench and the soak stand on: a signer, a relay, a TLS target, and owners with endpoints. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Caller } from "../../services/bus/messages/caller.ts";
import type { RoboticsEvent } from "../../services/bus/messages/robotics-events.ts";
import { changeWebhookEndpoint, registerWebhookEndpoint } from "../../services/bus/messages/webhook-endpoints.ts";
import { call } from "../../services/bus/operation.ts";
import { roboticsEventSubject } from "../../services/bus/subjects.ts";
import { filialKey, insertOutbox } from "../../services/db/outbox.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { announcer } from "../../services/robotics/events.ts";
import { createAuthority } from "../support/certificates.ts";
import type { BenchProcess, Ground } from "./bench-world.ts";

/** How long anything here may take before it has failed. */
const PATIENCE_MS = 120_000;

export interface WebhookOwner {
  readonly caller: Caller;
  readonly filialId: number;
  readonly consumerId: number;
  readonly endpointId: number;
}

export interface WebhookGround {
  readonly database: Database;
  readonly signer: BenchProcess;
  readonly receiver: BenchProcess;
  readonly url: string;
  readonly caFile: string;
  readonly owners: readonly WebhookOwner[];
  /** Delivery ids and when they arrived, since it was asked last. */
  arrived(): Promise<readonly (readonly [number, number])[]>;
  setStatus(status: "active" | "paused"): Promise<void>;
  /** Writes events and gives them to the bus as the relay does. */
  publish(count: number): Promise<void>;
  /** Commits one event for the relay; returns its id. */
  emit(index: number): Promise<number>;
  countOf(status: string): Promise<number>;
  /** Until so many deliveries have a status. */
  until(status: string, count: number): Promise<void>;
  /** Until no delivery waits any more. Counting all of them again and again would take PostgreSQL's time from the signer. */
  untilNoneWaits(): Promise<void>;
  stop(): Promise<void>;
}

export async function startWebhookGround(ground: Ground, plan: { readonly owners: number }): Promise<WebhookGround> {
  const folder = mkdtempSync(join(tmpdir(), "device-payments-webhooks-"));
  const authority = createAuthority();
  const { cert, key } = authority.issue({ names: ["localhost"] });
  const caFile = join(folder, "ca.pem");
  const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(caFile, authority.cert);
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key, { mode: 0o600 });
  const receiver = await ground.startProcess("webhook-receiver", "test/bench/load/webhook-receiver.ts", [
    certFile,
    keyFile,
  ]);
  const url = `https://localhost:${String(receiver.ready["port"])}/hook`;
  const databaseUrl = await ground.databaseUrl();
  const database = openDatabase({ url: databaseUrl, maxConnections: 4 });
  const environment = {
    DATABASE_URL: databaseUrl,
    WEBHOOK_SECRETS_KEY: randomBytes(32).toString("base64url"),
    WEBHOOK_ALLOW_LOOPBACK: "true",
    WEBHOOK_CA_FILE: caFile,
  };
  const signer = await ground.startProcess("webhook-signer", "services/main.ts", ["webhook-signer"], environment);
  const relay = await ground.startProcess("relay", "services/main.ts", ["relay"], environment);
  const owners: WebhookOwner[] = [];
  for (let at = 0; at < plan.owners; at += 1) owners.push(await addOwner({ ground, database, url }));
  // As robotics does: what was committed leaves at once.
  const announce = announcer(ground.bus.nc, {
    warn: (reason: unknown) => void process.stderr.write(`${JSON.stringify(reason)}\n`),
  });
  let tasks = 0;
  const nextEvent = (index: number): { readonly owner: WebhookOwner; readonly event: RoboticsEvent } => {
    const owner = owners[index % owners.length];
    if (owner === undefined) throw new Error("There are no owners.");
    tasks += 1;
    return { owner, event: cancelled(owner, tasks) };
  };
  const countOf = async (status: string): Promise<number> => {
    const [row] = await database<[{ count: number }]>`
      select count(*)::int as count from webhook_deliveries where status = ${status}`;
    return row.count;
  };
  const waitUntil = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
    const endMs = Date.now() + PATIENCE_MS;
    while (!(await isSo())) {
      if (Date.now() > endMs) throw new Error(`${what} is not so.`);
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
          call(ground.bus.nc, changeWebhookEndpoint, { caller, endpointId, status }),
        ),
      );
    },
    async publish(count) {
      const BATCH = 500;
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
            return ground.bus.js.publish(roboticsEventSubject(owner.filialId), JSON.stringify(published));
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
      waitUntil(`That ${count} deliveries are ${status}`, async () => (await countOf(status)) >= count),
    untilNoneWaits: () =>
      waitUntil("That no delivery waits", async () => {
        const [row] = await database<[{ waits: boolean }]>`
          select exists (select from webhook_deliveries where status = 'pending') as waits`;
        return !row.waits;
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
  ground,
  database,
  url,
}: {
  readonly ground: Ground;
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
  const { endpoint } = await call(ground.bus.nc, registerWebhookEndpoint, { caller, consumerId, url });
  return { caller, filialId, consumerId, endpointId: endpoint.endpointId };
}

function cancelled({ caller: { organizationId }, filialId, consumerId }: WebhookOwner, taskId: number): RoboticsEvent {
  const payload = { task_id: taskId, display_number: taskId, leg: "kitchen_to_table", status: "cancelled" } as const;
  const createdAt = new Date().toISOString();
  return { organizationId, filialId, consumerId, createdAt, eventType: "serving_task.cancelled", payload };
}
