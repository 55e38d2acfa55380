/**
 * Sandboxes of an organization: stations for tests, each with its devices and its cashier. They are ordinary rows, and
 * every change of one is an ordinary event; this file only knows what belongs together.
 */
import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Actor } from "../../machines/actor.ts";
import type { DeviceKind } from "../../machines/station/state.ts";
import { type Caller, personActor, requirePermission } from "../bus/messages/caller.ts";
import type * as sandboxes from "../bus/messages/sandboxes.ts";
import { firstPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { createOnce } from "../db/creations.ts";
import {
  credentialKey,
  insertOutboxRows,
  type OutboxKey,
  type OutboxRow,
  sessionKey,
  stationKey,
} from "../db/outbox.ts";
import type { Queryable, Transaction } from "../db/pool.ts";
import { flush, type RegistryDeps, type RegistryHandler } from "./deps.ts";
import { capabilitiesFor, deviceMessage, devicePut, moveLockedDevice, requireRoomAtStation } from "./devices.ts";
import { issueCode } from "./enrollment-codes.ts";
import { ownerEvent } from "./events.ts";
import { endFreeze } from "./kill-switches.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import { organizationParty } from "./passwords.ts";
import * as devices from "./sql/devices.ts";
import { revokeEnrollmentCodesOfStation } from "./sql/enrollment-codes.ts";
import { type RegistryEvent, recordEvent } from "./sql/events.ts";
import { lockFilial } from "./sql/filials.ts";
import * as sql from "./sql/sandboxes.ts";
import { endSessions } from "./sql/sessions.ts";
import * as stations from "./sql/stations.ts";
import * as users from "./sql/users.ts";
import { stationMessage, stationPut } from "./stations.ts";
import { keysOfEnds, sessionEndRows, stationActor, userMessage } from "./users.ts";

const DEVICES = {
  smart_pos_companion: { name: "Smart POS companion", handoffTarget: "sandbox-pos://collect" },
  customer_display: { name: "Customer display", handoffTarget: "" },
} as const satisfies Record<DeviceKind, { readonly name: string; readonly handoffTarget: string }>;
const CASHIER_NAME = "Sandbox cashier";

/** What a change has written so far; its events come after every row lock, and its outbox rows last. */
class Change {
  readonly tx: Transaction;
  readonly caller: Caller;
  readonly codeKey: string | undefined;
  readonly events: RegistryEvent[] = [];
  readonly outboxRows: OutboxRow[] = [];

  constructor(tx: Transaction, caller: Caller, codeKey: string | undefined) {
    this.tx = tx;
    this.caller = caller;
    this.codeKey = codeKey;
  }

  get owner(): Actor {
    return { kind: "owner", id: this.caller.userId };
  }

  record(action: string, subject: RegistryEvent["subject"], data?: RegistryEvent["data"]): void {
    this.events.push(ownerEvent(this.caller, action, subject, data));
  }

  async write(): Promise<void> {
    for (const event of this.events) await recordEvent(this.tx, event);
    await insertOutboxRows(this.tx, this.outboxRows);
  }

  /** What the replicas must have received before they show all of it. */
  keys(held: sql.SandboxRow, sessionKeys: readonly OutboxKey[]): OutboxKey[] {
    return [...keysOf(held), ...sessionKeys, ...this.outboxRows.map(({ key }) => key)];
  }
}

const keysOf = (held: Pick<sql.SandboxRow, "station_id" | "display_id" | "companion_id">): OutboxKey[] => [
  stationKey(held.station_id),
  credentialKey(held.display_id),
  credentialKey(held.companion_id),
];

async function messageOf(tx: Queryable, row: sql.SandboxRow): Promise<sandboxes.Sandbox> {
  const { organization_id: organizationId } = row;
  return {
    sandboxId: row.sandbox_id,
    station: stationMessage(existing(await stations.getStation(tx, organizationId, row.station_id))),
    display: deviceMessage(existing(await devices.getDevice(tx, organizationId, row.display_id))),
    companion: deviceMessage(existing(await devices.getDevice(tx, organizationId, row.companion_id))),
    cashier: userMessage(existing(await users.getUser(tx, organizationId, row.cashier_id))),
    configId: row.config_id,
    createdAtMs: row.created_at.getTime(),
    resetAtMs: row.reset_at?.getTime() ?? null,
  };
}

export const listSandboxes: RegistryHandler<typeof sandboxes.listSandboxes> = async (deps, request) => {
  const { caller, sinceId, limit } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const rows = await sql.listSandboxes(deps.sql, { organizationId, sinceId, limit: limit + 1 });
  const messages: sandboxes.Sandbox[] = [];
  for (const row of rows) messages.push(await messageOf(deps.sql, row));
  const { page, hasMore } = firstPage(messages, limit);
  return { sandboxes: page, hasMore };
};

export const getSandbox: RegistryHandler<typeof sandboxes.getSandbox> = async (deps, { caller, sandboxId }) => {
  requirePermission(caller, "organization.manage");
  return {
    sandbox: await messageOf(deps.sql, existing(await sql.getSandbox(deps.sql, caller.organizationId, sandboxId))),
  };
};

/**
 * Works in one transaction, so that a process that ends in the middle leaves nothing. A repetition is
 * `already_created`, because passwords are shown once.
 */
export const seedSandboxStation: RegistryHandler<typeof sandboxes.seedSandboxStation> = async (deps, request) => {
  const { caller, filialId, configId, ownsConfig, name, currency, creation } = request;
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const password = await newPassword(deps, organizationId);
  const create = async (tx: Transaction) => {
    // Locked, so that two requests at the limit are counted one after the other.
    existing(await lockFilial(tx, organizationId, filialId), "filial_id");
    await requireRoom(tx, organizationId);
    const change = new Change(tx, caller, deps.settings.ENROLLMENT_CODE_KEY);
    const station = await stations.createStation(tx, { organizationId, filialId, name, currency, sandbox: true });
    const stationId = station.station_id;
    change.record("station_created", { kind: "station", id: stationId }, { name, currency, filial_id: filialId });
    change.outboxRows.push(stationPut(station, change.owner));
    const display = await registerDevice(change, stationId, "customer_display");
    const companion = await registerDevice(change, stationId, "smart_pos_companion");
    const cashier = await createCashier(change, stationId, password.hash);
    const row = await sql.createSandbox(tx, {
      organizationId,
      stationId,
      displayId: display.device_id,
      companionId: companion.device_id,
      cashierId: cashier.user_id,
      configId,
      ownsConfig,
    });
    change.record("sandbox_seeded", { kind: "station", id: stationId }, { sandbox_id: row.sandbox_id });
    const codes = await issueCodes(change, display, companion);
    await change.write();
    return { sandbox: await messageOf(tx, row), ...codes };
  };
  const seeded = await createOnce(deps.sql, creation, { create, idOf: ({ sandbox }) => sandbox.sandboxId });
  const barrier = await flush(deps, stationKey(seeded.sandbox.station.stationId));
  return { ...seeded, cashierPassword: password.text, barrier };
};

/**
 * Ends all access and makes station, devices and cashier usable again. A device that was revoked cannot come back, so
 * another one takes its place; a closed station is a `conflict`. The devices get back the settings that the last reset kept.
 */
export const resetSandbox: RegistryHandler<typeof sandboxes.resetSandbox> = async (deps, request) => {
  const { caller, sandboxId, keepsSettings } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const password = await newPassword(deps, organizationId);
  const { keys, ...reset } = await deps.sql.begin(async (tx) => {
    const held = existing(await sql.lockSandbox(tx, organizationId, sandboxId));
    const change = new Change(tx, caller, deps.settings.ENROLLMENT_CODE_KEY);
    await resumeStation(change, held.station_id);
    const display = await resetDevice(change, held, "customer_display");
    const companion = await resetDevice(change, held, "smart_pos_companion");
    const sessionKeys = await resetCashier(change, held.cashier_id, password.hash);
    await endFreezes(change, held, "The sandbox was reset.");
    const row = await sql.markReset(tx, {
      sandboxId,
      displayId: display.device_id,
      companionId: companion.device_id,
      keptSettings: keepsSettings === true ? [settingsOf(display), settingsOf(companion)] : null,
    });
    change.record("sandbox_reset", { kind: "station", id: held.station_id }, { sandbox_id: sandboxId });
    const codes = await issueCodes(change, display, companion);
    await change.write();
    return { sandbox: await messageOf(tx, row), ...codes, keys: change.keys(held, sessionKeys) };
  });
  return { ...reset, cashierPassword: password.text, barrier: await flush(deps, ...new Set(keys)) };
};

/**
 * A repetition changes nothing, waits for the same changes, and returns the unused config again: the first request may have
 * ended before its end.
 */
export const deleteSandbox: RegistryHandler<typeof sandboxes.deleteSandbox> = async (deps, { caller, sandboxId }) => {
  const { organizationId } = requirePermission(caller, "organization.manage");
  const { keys, ...deleted } = await deps.sql.begin(async (tx) => {
    const held = await sql.lockSandbox(tx, organizationId, sandboxId);
    if (held === undefined) {
      const row = existing(await sql.getDeletedSandbox(tx, organizationId, sandboxId));
      return {
        unusedConfigId: (await sql.isConfigUnused(tx, row.config_id)) ? row.config_id : null,
        deletedAtMs: row.deleted_at.getTime(),
        keys: [...keysOf(row), ...(await keysOfEnds(tx, { userId: row.cashier_id }))],
      };
    }
    const change = new Change(tx, caller, deps.settings.ENROLLMENT_CODE_KEY);
    await closeStation(change, held.station_id);
    for (const deviceId of [held.display_id, held.companion_id]) await revokeDevice(change, deviceId);
    const sessionKeys = await suspendCashier(change, held.cashier_id);
    await endFreezes(change, held, "The sandbox was deleted.");
    const deletedAt = await sql.markDeleted(tx, sandboxId);
    const unusedConfigId = (await sql.isConfigUnused(tx, held.config_id)) ? held.config_id : null;
    change.record("sandbox_deleted", { kind: "station", id: held.station_id }, { sandbox_id: sandboxId });
    await change.write();
    return { unusedConfigId, deletedAtMs: deletedAt.getTime(), keys: change.keys(held, sessionKeys) };
  });
  return { ...deleted, barrier: await flush(deps, ...new Set(keys)) };
};

/** Hashing takes a while, so it is done before the transaction. */
async function newPassword(deps: RegistryDeps, organizationId: number) {
  const text = randomBytes(REGISTRY_LIMITS.sandboxPasswordBytes).toString("base64url");
  return { text, hash: await deps.passwords.hold(organizationParty(organizationId), (checks) => checks.hash(text)) };
}

async function requireRoom(tx: Transaction, organizationId: number): Promise<void> {
  if ((await sql.countSandboxes(tx, organizationId)) < REGISTRY_LIMITS.sandboxes) return;
  const detail = `An organization has at most ${REGISTRY_LIMITS.sandboxes} sandboxes; delete one first.`;
  throw new RefusedError({ code: "conflict", detail });
}

async function registerDevice(change: Change, stationId: number, kind: DeviceKind): Promise<devices.DeviceRow> {
  const { organizationId } = change.caller;
  const capabilities = capabilitiesFor(kind, undefined);
  const wanted = { organizationId, stationId, kind, capabilities, ...DEVICES[kind] };
  const device = await devices.registerDevice(change.tx, wanted);
  const data = { name: device.name, kind, station_id: stationId };
  change.record("device_registered", { kind: "device", id: device.device_id }, data);
  change.outboxRows.push(devicePut(device, change.owner));
  return device;
}

async function createCashier(change: Change, stationId: number, passwordHash: string): Promise<users.UserRow> {
  const { organizationId } = change.caller;
  // Random, because an e-mail address names one person in the whole installation, and another person could have this
  // one.
  const email = `cashier-${stationId}-${randomBytes(4).toString("hex")}@sandbox.example`;
  const role = "cashier";
  const user = await users.createUser(change.tx, { organizationId, email, name: CASHIER_NAME, role, passwordHash });
  if (user === undefined) throw new RefusedError({ code: "already_exists" });
  change.record("user_created", { kind: "user", id: user.user_id }, { email, name: CASHIER_NAME, role });
  return user;
}

async function issueCodes(change: Change, display: devices.DeviceRow, companion: devices.DeviceRow) {
  const displayCode = await issueCodeFor(change, display);
  const companionCode = await issueCodeFor(change, companion);
  const codesExpireAtMs = companionCode.row.expires_at.getTime();
  return { displayCode: displayCode.code, companionCode: companionCode.code, codesExpireAtMs };
}

async function issueCodeFor(change: Change, device: devices.DeviceRow): ReturnType<typeof issueCode> {
  const { caller, codeKey: key, tx } = change;
  const lifetimeMs = REGISTRY_LIMITS.sandboxCodeLifetimeMs;
  const issued = await issueCode(tx, { key, device, lifetimeMs, actor: personActor(caller) });
  change.events.push(issued.event);
  return issued;
}

async function resumeStation(change: Change, stationId: number): Promise<void> {
  const station = existing(await stations.lockStation(change.tx, change.caller.organizationId, stationId));
  if (station.status === "active") return;
  if (station.status === "closed") {
    const detail = "The sandbox's station is closed for good; delete the sandbox and seed another one.";
    throw new RefusedError({ code: "conflict", detail });
  }
  await moveStation(change, station, "active", "station_resumed");
}

async function closeStation(change: Change, stationId: number): Promise<void> {
  const station = existing(await stations.lockStation(change.tx, change.caller.organizationId, stationId));
  if (station.status === "closed") return;
  await moveStation(change, station, "closed", "station_closed");
  await revokeEnrollmentCodesOfStation(change.tx, stationId);
}

async function moveStation(
  change: Change,
  station: stations.StationRow,
  to: stations.StationRow["status"],
  action: string,
): Promise<void> {
  const row = await stations.moveStation(change.tx, station.station_id, to);
  change.record(action, { kind: "station", id: station.station_id }, { from: station.status, to });
  change.outboxRows.push(stationPut(row, change.owner));
}

async function resetDevice(change: Change, sandbox: sql.SandboxRow, kind: DeviceKind): Promise<devices.DeviceRow> {
  const { caller, tx } = change;
  const deviceId = kind === "customer_display" ? sandbox.display_id : sandbox.companion_id;
  const device = existing(await devices.lockDevice(tx, caller.organizationId, deviceId));
  if (device.status === "revoked") {
    await requireRoomAtStation(tx, caller.organizationId, sandbox.station_id);
    return registerDevice(change, sandbox.station_id, kind);
  }
  await restoreSettings(change, device, sandbox.kept_settings ?? []);
  const { row, event, outboxRows } = await moveLockedDevice(tx, { caller, device, move: "RESET" });
  change.events.push(event);
  change.outboxRows.push(...outboxRows);
  return row;
}

const settingsOf = ({ device_id, capabilities, handoff_target }: devices.DeviceRow): sql.KeptSettings => ({
  device_id,
  capabilities,
  handoff_target,
});

async function restoreSettings(
  change: Change,
  device: devices.DeviceRow,
  keptSettings: readonly sql.KeptSettings[],
): Promise<void> {
  const { device_id: deviceId, name, capabilities, handoff_target } = device;
  const kept = keptSettings.find((each) => each.device_id === deviceId);
  if (kept === undefined || isDeepStrictEqual(kept, settingsOf(device))) return;
  const from = { name, capabilities, handoff_target };
  const to = { name, capabilities: kept.capabilities, handoff_target: kept.handoff_target };
  await devices.changeDevice(change.tx, { device_id: deviceId, ...to });
  change.record("device_changed", { kind: "device", id: deviceId }, { from, to });
}

/** Ends the freezes of the sandbox's station and devices. A freeze of the organization stays. */
async function endFreezes(change: Change, sandbox: sql.SandboxRow, reason: string): Promise<void> {
  const { organizationId } = change.caller;
  const facts = { organizationId, reason, actor: personActor(change.caller) };
  for (const subject of [
    { kind: "station", id: sandbox.station_id },
    { kind: "device", id: sandbox.display_id },
    { kind: "device", id: sandbox.companion_id },
  ] as const) {
    const changed = await endFreeze(change.tx, { ...facts, ...subject });
    if (changed === undefined) continue;
    change.events.push(changed.event);
    change.outboxRows.push(changed.outboxRow);
  }
}

async function revokeDevice(change: Change, deviceId: number): Promise<void> {
  const { caller, tx } = change;
  const device = existing(await devices.lockDevice(tx, caller.organizationId, deviceId));
  if (device.status === "revoked") return;
  const { event, outboxRows } = await moveLockedDevice(tx, { caller, device, move: "REVOKE" });
  change.events.push(event);
  change.outboxRows.push(...outboxRows);
}

async function resetCashier(change: Change, userId: number, passwordHash: string): Promise<OutboxKey[]> {
  const { caller, tx } = change;
  const [locked] = await users.lockUsers(tx, caller.organizationId, [userId]);
  const cashier = existing(locked);
  if (cashier.role !== "cashier") {
    const detail =
      "The sandbox's cashier has another role now; give them back the role of a cashier, or delete the sandbox.";
    throw new RefusedError({ code: "conflict", detail });
  }
  if (cashier.status === "suspended") {
    await users.moveUser(tx, userId, "active");
    change.record("user_resumed", { kind: "user", id: userId }, { from: "suspended", to: "active" });
  }
  await users.setPasswordHash(tx, userId, passwordHash);
  change.record("user_password_reset", { kind: "user", id: userId });
  return endCashierSessions(change, userId);
}

/** Leaves a person who has another role by now alone: it could be the last owner. */
async function suspendCashier(change: Change, userId: number): Promise<OutboxKey[]> {
  const { caller, tx } = change;
  const [locked] = await users.lockUsers(tx, caller.organizationId, [userId]);
  const cashier = existing(locked);
  if (cashier.role !== "cashier") return [];
  if (cashier.status === "active") {
    await users.moveUser(tx, userId, "suspended");
    change.record("user_suspended", { kind: "user", id: userId }, { from: "active", to: "suspended" });
  }
  return endCashierSessions(change, userId);
}

async function endCashierSessions(change: Change, userId: number): Promise<OutboxKey[]> {
  const ended = await endSessions(change.tx, userId);
  const rows = await sessionEndRows(change.tx, { userId, ended, by: stationActor(change.caller) });
  change.outboxRows.push(...rows);
  return [sessionKey(userId), ...rows.map(({ key }) => key)];
}
