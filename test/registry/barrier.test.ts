/** The relay and the actor hosts run here: each answer states the position at which the replicas show its change. */
import { createHash, randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { decodeCommit } from "../../machines/station/commit.ts";
import { moveDevice } from "../../services/bus/messages/devices.ts";
import { enrollDevice } from "../../services/bus/messages/enrollment-codes.ts";
import { createFilial } from "../../services/bus/messages/filials.ts";
import { deleteSandbox, seedSandboxStation } from "../../services/bus/messages/sandboxes.ts";
import * as sessions from "../../services/bus/messages/sessions.ts";
import * as users from "../../services/bus/messages/users.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { CREDENTIALS, SESSIONS } from "../../services/bus/streams.ts";
import type { Service } from "../../services/runtime/service.ts";
import { startStationsService } from "../../services/stations/service.ts";
import { STATION_LOG, stationLogSubject } from "../support/one-log.ts";
import {
  callerOf,
  newCode,
  newDevice,
  newStation,
  OWNER_PASSWORD,
  type RegistryFixture,
  startRegistry,
} from "./registry-fixture.ts";

let fixture: RegistryFixture;
let stations: Service;
beforeAll(async () => {
  fixture = await startRegistry({ relay: true });
  stations = await startStationsService(fixture.serviceDeps);
});
afterAll(async () => {
  await stations.stop();
  await fixture.stop();
});

const newest = async (stream: string, subject: string) => {
  const message = await fixture.bus.jsm.streams.getMessage(stream, { last_by_subj: subject });
  return {
    sequence: message?.seq,
    operation: message?.header.get("KV-Operation"),
    text: message?.string() ?? "",
    storedAtMs: message?.time.getTime() ?? Number.NaN,
  };
};
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const entry = (bucket: { name: string }, secret: string) =>
  newest(`KV_${bucket.name}`, `$KV.${bucket.name}.${sha256(secret)}`);
const station = async (stationId: number) => {
  const { sequence, text } = await newest(STATION_LOG.name, stationLogSubject(stationId));
  return { sequence, state: decodeCommit(text).state };
};

test("each change of a device: answered once the station's log and the credentials' bucket have it", async () => {
  const caller = fixture.owner;
  const { stationId } = await newStation(fixture);
  expect((await station(stationId)).state).toMatchObject({ stationId, name: "Counter", status: "active", devices: [] });
  const { deviceId } = await newDevice(fixture, stationId);
  expect((await station(stationId)).state.devices).toMatchObject([{ deviceId, status: "pending" }]);

  const enrolled = await fixture.ask(enrollDevice, { address: "127.0.0.1", code: await newCode(fixture, deviceId) });
  const put = await entry(CREDENTIALS, enrolled.credential);
  expect(JSON.parse(put.text)).toEqual({ deviceId, stationId, scopes: enrolled.scopes });
  const active = await station(stationId);
  expect(active.state.devices).toMatchObject([{ deviceId, status: "active" }]);
  expect(enrolled.barrier).toEqual({ positions: { STATION_LOG_0: active.sequence, KV_CREDENTIALS: put.sequence } });

  const suspended = await fixture.ask(moveDevice, { caller, deviceId, move: "SUSPEND" });
  const log = await station(stationId);
  expect(log.state.devices).toMatchObject([{ deviceId, status: "suspended" }]);
  expect(suspended.barrier.positions["STATION_LOG_0"]).toBe(log.sequence);
  expect((await entry(CREDENTIALS, enrolled.credential)).operation).toBe("");

  const reset = await fixture.ask(moveDevice, { caller, deviceId, move: "RESET" });
  const deleted = await entry(CREDENTIALS, enrolled.credential);
  expect(deleted.operation).toBe("DEL");
  expect(reset.barrier.positions["KV_CREDENTIALS"]).toBe(deleted.sequence);
  expect((await station(stationId)).state.devices).toMatchObject([{ deviceId, status: "pending" }]);

  const again = await fixture.ask(enrollDevice, { address: "127.0.0.1", code: await newCode(fixture, deviceId) });
  await fixture.ask(moveDevice, { caller, deviceId, move: "REVOKE" });
  expect((await entry(CREDENTIALS, again.credential)).operation).toBe("DEL");
  expect((await station(stationId)).state.devices).toEqual([]);
});

test("a session: in the bucket when the log-in is answered, and deleted when the log-out is answered", async () => {
  const { email } = fixture.sandbox.owner;
  const reply = await fixture.ask(sessions.logIn, {
    email,
    password: OWNER_PASSWORD,
    address: "192.0.2.1",
    permission: "organization.manage",
  });
  const put = await entry(SESSIONS, reply.token);
  const session = JSON.parse(put.text) as { sessionId: number };
  expect(session).toEqual({ ...fixture.owner, sessionId: session.sessionId, expiresAtMs: reply.expiresAtMs });
  expect(reply.barrier).toEqual({ positions: { KV_SESSIONS: put.sequence } });
  const barrier = await fixture.ask(sessions.logOut, { caller: fixture.owner, sessionId: session.sessionId });
  const deleted = await entry(SESSIONS, reply.token);
  expect(deleted.operation).toBe("DEL");
  expect(barrier).toEqual({ positions: { KV_SESSIONS: deleted.sequence } });
});

test("a revoked credential: deleted at once, also when no host has its station", async () => {
  const caller = fixture.owner;
  const { stationId } = await newStation(fixture);
  const { deviceId } = await newDevice(fixture, stationId);
  const { credential } = await fixture.ask(enrollDevice, {
    address: "127.0.0.1",
    code: await newCode(fixture, deviceId),
  });
  await stations.stop();
  try {
    const startedAtMs = Date.now();
    const { device, barrier } = await fixture.ask(moveDevice, { caller, deviceId, move: "REVOKE" });
    expect(device.status).toBe("revoked");
    expect(barrier.positions["STATION_LOG_0"]).toBeUndefined();
    expect(barrier.isUndelivered).toBe(true);
    expect(barrier.positions["KV_CREDENTIALS"]).toBeGreaterThan(0);
    const deleted = await entry(CREDENTIALS, credential);
    expect(deleted.operation).toBe("DEL");
    expect(deleted.storedAtMs - startedAtMs).toBeLessThan(2_500);
  } finally {
    stations = await startStationsService(fixture.serviceDeps);
  }
});

/** A new cashier whose session drives a new station. */
async function newDriver(email: string) {
  const password = "a long pass phrase";
  const { user } = await fixture.ask(users.createUser, {
    caller: fixture.owner,
    email,
    name: "Carl",
    role: "cashier",
    password,
  });
  const caller = await callerOf(fixture.sql, email);
  const logIn = { email, password, address: "192.0.2.2", permission: "payments.collect" as const };
  const { token } = await fixture.ask(sessions.logIn, logIn);
  const { sessionId, expiresAtMs } = JSON.parse((await entry(SESSIONS, token)).text) as sessions.SessionEntry;
  const { stationId } = await newStation(fixture);
  await fixture.ask(sessions.bindStation, { caller, sessionId, stationId });
  const command = { type: "lease_acquire", session: { sessionId, expiresAtMs } } as const;
  const actor = { kind: "cashier", id: user.userId, name: "Carl" } as const;
  const acquired = await askStation(fixture.bus.nc, stationId, { commandId: randomUUID(), actor, command });
  expect(acquired.reply.ok).toBe(true);
  return { caller, userId: user.userId, sessionId, stationId };
}
type Driver = Awaited<ReturnType<typeof newDriver>>;

const byOwner = ({ userId }: Driver) => ({ caller: fixture.owner, userId });
test.each([
  ["sign-out", ({ caller, sessionId }: Driver) => fixture.ask(sessions.logOut, { caller, sessionId })],
  [
    "suspension",
    async (driver: Driver) =>
      (await fixture.ask(users.moveUser, { ...byOwner(driver), move: "SUSPEND" as const })).barrier,
  ],
  [
    "role",
    async (driver: Driver) =>
      (await fixture.ask(users.changeUser, { ...byOwner(driver), role: "reconciliation_operator" as const })).barrier,
  ],
  [
    "password",
    async (driver: Driver) =>
      (await fixture.ask(users.resetUserPassword, { ...byOwner(driver), password: "another pass phrase" })).barrier,
  ],
])("a repeated %s before the lease can end: the same answer as the first one", async (what, act) => {
  const driver = await newDriver(`${what}@sandbox.example`);
  const other = await newDriver(`other-than-${what}@sandbox.example`);
  await stations.stop();
  try {
    expect((await act(driver)).isUndelivered).toBe(true);
    expect((await act(driver)).isUndelivered).toBe(true);
  } finally {
    stations = await startStationsService(fixture.serviceDeps);
  }
  // The lease has ended. A repetition returns the position of that change, and does not wait for another cashier.
  await expect.poll(async () => (await act(driver)).isUndelivered, { timeout: 10_000 }).toBeUndefined();
  const { sequence, state } = await station(driver.stationId);
  expect(state.lease).toBeNull();
  expect((await act(driver)).positions["STATION_LOG_0"]).toBeGreaterThanOrEqual(sequence ?? Number.NaN);
  expect((await station(other.stationId)).state.lease).not.toBeNull();
});

test.each([
  ["last", true],
  ["other", false],
])(
  "a repeated deletion of the %s sandbox that uses a config: the same answer as the first one",
  async (_, ownsConfig) => {
    const caller = fixture.owner;
    const { filialId } = (await fixture.ask(createFilial, { caller, name: "Test street" })).filial;
    const [{ config_id: configId }] = await fixture.sql<[{ config_id: number }]>`
    insert into provider_configs (organization_id, filial_id, kind, mode, name, settings)
    values (${caller.organizationId}, ${filialId}, 'sandbox', 'test', 'Sandbox', '{}') returning config_id`;
    const wanted = { caller, filialId, configId, ownsConfig, name: "Test counter", currency: "EUR" };
    const { sandbox, companionCode: code } = await fixture.ask(seedSandboxStation, wanted);
    const { stationId } = sandbox.station;
    const { credential } = await fixture.ask(enrollDevice, { address: "127.0.0.1", code });
    const act = () => fixture.ask(deleteSandbox, { caller, sandboxId: sandbox.sandboxId });
    await stations.stop();
    try {
      const first = await act();
      expect(first).toMatchObject({ unusedConfigId: ownsConfig ? configId : null, barrier: { isUndelivered: true } });
      const { sequence, operation } = await entry(CREDENTIALS, credential);
      expect(operation).toBe("DEL");
      expect(first.barrier.positions["KV_CREDENTIALS"]).toBe(sequence);
      expect(await act()).toEqual(first);
    } finally {
      stations = await startStationsService(fixture.serviceDeps);
    }
    await expect.poll(async () => (await act()).barrier.isUndelivered, { timeout: 10_000 }).toBeUndefined();
    const { sequence, state } = await station(stationId);
    expect(state.status).toBe("closed");
    expect((await act()).barrier.positions["STATION_LOG_0"]).toBe(sequence);
  },
);
