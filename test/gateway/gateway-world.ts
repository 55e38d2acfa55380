/**
 * A gateway with a separate NATS server and without the services, for answers that the gateway gives from memory. Stations
 * change by real commits, which a step of the machine makes. Credentials and switches change by entries of their buckets.
 */
import { hash, randomBytes } from "node:crypto";
import { headers } from "nats";
import type { Registry } from "prom-client";
import { type Gateway, startGateway } from "../../gateway/app.ts";
import type { DeviceScope } from "../../gateway/http/route.ts";
import type { Actor } from "../../machines/actor.ts";
import { DEFAULT_MACHINE_SETTINGS } from "../../machines/settings.ts";
import { NO_KILL_SWITCHES } from "../../machines/standing.ts";
import type { StationCommand } from "../../machines/station/command.ts";
import { encodeCommit, MACHINE_VERSION } from "../../machines/station/commit.ts";
import type { StationState } from "../../machines/station/state.ts";
import { step } from "../../machines/station/step.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import type { SessionEntry } from "../../services/bus/messages/sessions.ts";
import { createLog } from "../../services/runtime/log.ts";
import { keepBucketsComplete } from "../support/buckets-complete.ts";
import { stationLogSubject } from "../support/one-log.ts";
import { startNats, type TestServer } from "../support/servers.ts";

export const CASHIER: Actor = { kind: "cashier", id: 7, name: "Ana" };
export const REGISTRY: Actor = { kind: "registry", id: 0 };
const VISIBLE_MS = 15_000;
export const SILENT = createLog({ service: "test", level: process.env.TEST_LOG === "1" ? "debug" : "silent" });

export const DISPLAY_SCOPES: readonly DeviceScope[] = ["device:read", "device:heartbeat", "display:read"];
export const COMPANION_SCOPES: readonly DeviceScope[] = [
  "device:read",
  "device:heartbeat",
  "assignment:read",
  "assignment:report",
];

export interface GatewayWorld {
  readonly nats: TestServer;
  readonly bus: Bus;
  readonly gateway: Gateway;
  readonly baseUrl: string;
  /** A station with a display (id × 10 + 1) and a companion (id × 10 + 2). Both are active, and the companion is online. */
  openStation(stationId: number, organizationId?: number): Promise<TestStation>;
  /** Puts an entry for a new credential and returns the credential. */
  credential(deviceId: number, stationId: number, scopes: readonly DeviceScope[]): Promise<string>;
  revoke(credential: string): Promise<void>;
  /** Puts a session for a new token and returns the token. */
  session(entry?: Partial<SessionEntry>): Promise<string>;
  /** The key is `platform`, `organization.<id>`, `station.<id>` or `device.<id>`. */
  setSwitch(key: string, isOn: boolean): Promise<void>;
  stop(): Promise<void>;
}

export interface TestStation {
  readonly stationId: number;
  readonly displayId: number;
  readonly companionId: number;
  state(): StationState;
  /** Commits one command. Resolves when the gateway's replica has the commit. */
  run(command: StationCommand, options?: { readonly actor?: Actor; readonly atMs?: number }): Promise<void>;
  /** Puts an order of EUR 25.00 and a smart POS intent for it; returns the intent's id. */
  handOver(options?: { readonly atMs?: number; readonly lifetimeMs?: number }): Promise<number>;
}

export async function startGatewayWorld(
  options: {
    readonly trustedProxies?: readonly string[];
    readonly maxConnections?: number;
    readonly maxConnectionsPerAddress?: number;
    readonly metrics?: Registry;
  } = {},
): Promise<GatewayWorld> {
  const nats = await startNats();
  const bus = await connectBus({ url: nats.url, name: "test", log: SILENT });
  await ensureStreams(bus, { replicas: 1, logs: 1 });
  await keepBucketsComplete(bus);
  const gatewayBus = await connectBus({ url: nats.url, name: "gateway", log: SILENT });
  const settings = {
    host: "127.0.0.1",
    port: 0,
    sharedPort: false,
    maxConnections: options.maxConnections,
    maxConnectionsPerAddress: options.maxConnectionsPerAddress,
    trustedProxies: [...(options.trustedProxies ?? [])],
    platformKey: undefined,
    tls: undefined,
  };
  const gateway = await startGateway({ bus: gatewayBus, log: SILENT, settings, metrics: options.metrics });
  const put = async (subject: string, data: string): Promise<number> => (await bus.js.publish(subject, data)).seq;
  const { feeds, switches } = gateway.replicas;

  return {
    nats,
    bus,
    gateway,
    baseUrl: `http://127.0.0.1:${gateway.port}`,
    openStation: (stationId, organizationId = 1) => openStation({ bus, gateway }, stationId, organizationId),
    async credential(deviceId, stationId, scopes) {
      const credential = `dp_00_${randomBytes(32).toString("base64url")}`;
      const entry = JSON.stringify({ deviceId, stationId, scopes });
      const sequence = await put(`$KV.CREDENTIALS.${hash("sha256", credential, "hex")}`, entry);
      await feeds.credentials.waitFor(sequence, VISIBLE_MS);
      return credential;
    },
    async revoke(credential) {
      const sequence = await put(`$KV.CREDENTIALS.${hash("sha256", credential, "hex")}`, "");
      await feeds.credentials.waitFor(sequence, VISIBLE_MS);
    },
    async session(entry = {}) {
      const token = randomBytes(32).toString("base64url");
      const whole: SessionEntry = {
        userId: 7,
        name: "Ana",
        organizationId: 1,
        role: "cashier",
        permissions: ["payments.collect"],
        sessionId: 1,
        expiresAtMs: Date.now() + 60_000,
        ...entry,
      };
      const sequence = await put(`$KV.SESSIONS.${hash("sha256", token, "hex")}`, JSON.stringify(whole));
      await feeds.sessions.waitFor(sequence, VISIBLE_MS);
      return token;
    },
    async setSwitch(key, isOn) {
      const changed = new Promise<void>((resolve) => switches.onChange(() => resolve()));
      if (isOn) await put(`$KV.SWITCHES.${key}`, "{}");
      else await deleteKey(bus, `$KV.SWITCHES.${key}`);
      await changed;
    },
    async stop() {
      await gateway.stop();
      await Promise.all([gatewayBus.close(), bus.close()]);
      await nats.stop();
    },
  };
}

async function deleteKey(bus: Bus, subject: string): Promise<void> {
  const marker = headers();
  marker.set("KV-Operation", "DEL");
  await bus.js.publish(subject, "", { headers: marker });
}

export async function openStation(
  deps: { readonly bus: Bus; readonly gateway: Gateway },
  stationId: number,
  organizationId: number,
): Promise<TestStation> {
  let state: StationState | null = null;
  let version = 0;
  let orders = 0;
  const displayId = stationId * 10 + 1;
  const companionId = stationId * 10 + 2;
  const run: TestStation["run"] = async (command, options = {}) => {
    const atMs = options.atMs ?? Date.now();
    const actor = options.actor ?? REGISTRY;
    const commandId = randomBytes(8).toString("hex");
    const switches = NO_KILL_SWITCHES;
    const result = step(state, {
      command,
      commandId,
      actor,
      atMs,
      switches,
      settings: DEFAULT_MACHINE_SETTINGS,
      recordedConfirmation: "none",
    });
    if (!result.reply.ok) throw new Error(`The station refused ${command.type}: ${result.reply.code}.`);
    if (result.state === null) throw new Error(`${command.type} created no station.`);
    state = result.state;
    version += 1;
    const { events, reply } = result;
    const commit = { machineVersion: MACHINE_VERSION, version, atMs, commandId, actor, events, reply, state };
    const { seq } = await deps.bus.js.publish(stationLogSubject(stationId), encodeCommit(commit));
    await deps.gateway.replicas.waitForStation(stationId, seq, VISIBLE_MS);
  };
  const device = { status: "active", handoffTarget: "", revision: 1 } as const;
  await run({
    type: "station_put",
    stationId,
    station: {
      organizationId,
      filialId: 1,
      name: `Counter ${stationId}`,
      currency: "EUR",
      status: "active",
      revision: 1,
    },
  });
  await run({
    type: "device_put",
    device: {
      ...device,
      deviceId: displayId,
      name: "Display",
      kind: "customer_display",
      capabilities: ["display_total", "qr_dynamic_present"],
    },
  });
  await run({
    type: "device_put",
    device: {
      ...device,
      deviceId: companionId,
      name: "Tablet",
      kind: "smart_pos_companion",
      capabilities: ["handoff_present", "outcome_report"],
      handoffTarget: "pay://collect?x=1&y=ü",
    },
  });
  await run({ type: "device_seen", deviceId: companionId, seenAtMs: Date.now() });
  return {
    stationId,
    displayId,
    companionId,
    state: () => state as unknown as StationState,
    run,
    async handOver(options = {}) {
      const atMs = options.atMs ?? Date.now();
      orders += 1;
      const order = {
        orderId: stationId * 1_000 + orders,
        orderDisplayNumber: orders,
        amountMinor: "2500",
        currency: "EUR",
        status: "open" as const,
        revision: 1,
      };
      const intentId = stationId * 100 + orders;
      await run({ type: "order_put", order }, { atMs });
      await run({ type: "lease_acquire" }, { actor: CASHIER, atMs });
      const create = { type: "intent_create", route: "smart_pos", intentId, order } as const;
      await run({ ...create, lifetimeMs: options.lifetimeMs }, { actor: CASHIER, atMs });
      return intentId;
    },
  };
}
