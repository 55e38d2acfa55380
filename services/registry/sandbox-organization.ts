/** The sandbox for trying the service. It is in the same tables as all other organizations and behaves like them. */
import type { Actor } from "../../machines/actor.ts";
import type { DeviceKind } from "../../machines/station/state.ts";
import { OPERATOR, type Role } from "../bus/messages/caller.ts";
import type * as sandbox from "../bus/messages/sandbox-organization.ts";
import type { ReplyOf } from "../bus/operation.ts";
import { RefusedError } from "../bus/refusals.ts";
import { insertOutboxRows, type OutboxKey, type OutboxRow, stationKey } from "../db/outbox.ts";
import type { Transaction } from "../db/pool.ts";
import { seedCatalogueItems } from "./catalogue-items.ts";
import { flush, type RegistryDeps, type RegistryHandler } from "./deps.ts";
import { capabilitiesFor, devicePut } from "./devices.ts";
import { issueCode } from "./enrollment-codes.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import { OPERATOR_PARTY } from "./passwords.ts";
import * as devices from "./sql/devices.ts";
import { type RegistryEvent, recordEvent, type SubjectKind } from "./sql/events.ts";
import { createFilial, getFirstFilial } from "./sql/filials.ts";
import { createOrganization, getSandboxOrganization, lockSeeding } from "./sql/organizations.ts";
import { endSessions } from "./sql/sessions.ts";
import { createStation, holdSeededStation } from "./sql/stations.ts";
import { createUser, getUserByEmail, setPasswordHash } from "./sql/users.ts";
import { stationPut } from "./stations.ts";
import { sessionDeletes } from "./users.ts";

interface SandboxUser {
  readonly email: string;
  readonly name: string;
  readonly role: Role;
}

interface SandboxStation {
  /** Identifies the station in a later run, also when the owner has renamed it. */
  readonly seed: string;
  readonly name: string;
  readonly currency: string;
  readonly devices: readonly { readonly kind: DeviceKind; readonly name: string; readonly handoffTarget: string }[];
}

const COMPANION = { kind: "smart_pos_companion", name: "Smart POS companion", handoffTarget: "sandbox-pos://collect" };
const DISPLAY = { kind: "customer_display", name: "Customer display", handoffTarget: "" };
const DEVICES = [COMPANION, DISPLAY] as SandboxStation["devices"];

const SANDBOX = {
  organization: "Sandbox Bistro",
  filial: "Sandbox Filial",
  owner: { email: "owner@sandbox.example", name: "Sandbox Owner", role: "owner" } satisfies SandboxUser,
  cashier: { email: "cashier@sandbox.example", name: "Sandbox Cashier", role: "cashier" } satisfies SandboxUser,
  operator: {
    email: "operator@sandbox.example",
    name: "Sandbox Operator",
    role: "reconciliation_operator",
  } satisfies SandboxUser,
  stations: [
    /** For trying the API by hand. */
    { seed: "counter", name: "Sandbox Counter", currency: "EUR", devices: DEVICES },
    /** For the virtual companion and display. */
    { seed: "demo", name: "Sandbox Demo", currency: "EUR", devices: DEVICES },
  ] satisfies SandboxStation[],
} as const;

/** The people of the sandbox, each with another role. */
export const SANDBOX_PEOPLE: readonly SandboxUser[] = [SANDBOX.owner, SANDBOX.cashier, SANDBOX.operator];

/** The registry acts here for the operator of the installation. */
const REGISTRY: Actor = { kind: "registry", id: 0 };

type Seeded = ReplyOf<typeof sandbox.seedSandbox>;

interface Seeding {
  readonly tx: Transaction;
  readonly organizationId: number;
  readonly filialId: number;
  readonly codeKey: string | undefined;
  /** Written after every row lock (`recordEvent`). */
  readonly events: RegistryEvent[];
  /** Written last, because the write locks their keys (`insertOutboxRows`). */
  readonly rows: OutboxRow[];
}

/**
 * Creates the sandbox, or its missing parts. A second run keeps every id, sets the passwords of the request, and issues
 * a new code for each device that is still pending. It replaces closed stations and revoked devices.
 */
export const seedSandbox: RegistryHandler<typeof sandbox.seedSandbox> = async (deps, request) => {
  const users = [
    await preparePassword(deps, SANDBOX.owner, request.ownerPassword),
    await preparePassword(deps, SANDBOX.cashier, request.cashierPassword),
    ...(request.operatorPassword === undefined
      ? []
      : [await preparePassword(deps, SANDBOX.operator, request.operatorPassword)]),
  ];
  const rows: OutboxRow[] = [];
  const seeded = await deps.sql.begin(async (tx): Promise<Seeded> => {
    await lockSeeding(tx);
    const events: RegistryEvent[] = [];
    const organizationId = (await getSandboxOrganization(tx))?.organization_id ?? (await seedOrganization(tx, events));
    const filialId =
      (await getFirstFilial(tx, organizationId))?.filial_id ?? (await seedFilial(tx, organizationId, events));
    const seeding: Seeding = { tx, organizationId, filialId, codeKey: deps.settings.ENROLLMENT_CODE_KEY, events, rows };
    const stations: Seeded["stations"] = [];
    for (const station of SANDBOX.stations) stations.push(await seedStation(seeding, station));
    for (const itemId of await seedCatalogueItems(tx, organizationId)) {
      events.push(seededEvent(organizationId, "catalogue_item_created", "catalogue_item", itemId));
    }
    for (const user of users) await seedUser(seeding, user);
    for (const event of events) await recordEvent(tx, event);
    await insertOutboxRows(tx, rows);
    const { owner, cashier, operator } = SANDBOX;
    const emails = {
      owner: { email: owner.email },
      cashier: { email: cashier.email },
      operator: { email: operator.email },
    };
    return { organizationId, filialId, ...emails, stations };
  });
  // Also delivers the rows of an earlier run, because the caller uses these stations next.
  const keys = new Set<OutboxKey>([
    ...rows.map((row) => row.key),
    ...seeded.stations.map((station) => stationKey(station.stationId)),
  ]);
  await flush(deps, ...keys);
  return seeded;
};

interface PreparedUser extends SandboxUser {
  /** Undefined when the stored hash already belongs to this password. */
  readonly passwordHash: string | undefined;
}

/** Hashing is slow, so it comes before the transaction. */
async function preparePassword(deps: RegistryDeps, user: SandboxUser, password: string): Promise<PreparedUser> {
  const known = await getUserByEmail(deps.sql, user.email);
  const passwordHash = await deps.passwords.hold(OPERATOR_PARTY, async (checks) =>
    known !== undefined && (await checks.verify(known.password_hash, password)) ? undefined : checks.hash(password),
  );
  return { ...user, passwordHash };
}

async function seedOrganization(tx: Transaction, events: RegistryEvent[]): Promise<number> {
  const { organization_id: organizationId } = await createOrganization(tx, {
    name: SANDBOX.organization,
    sandbox: true,
  });
  events.push(seededEvent(organizationId, "organization_created", "organization", organizationId));
  return organizationId;
}

async function seedFilial(tx: Transaction, organizationId: number, events: RegistryEvent[]): Promise<number> {
  const { filial_id: filialId } = await createFilial(tx, organizationId, SANDBOX.filial);
  events.push(seededEvent(organizationId, "filial_created", "filial", filialId));
  return filialId;
}

async function seedStation(seeding: Seeding, wanted: SandboxStation): Promise<Seeded["stations"][number]> {
  const { tx, organizationId, filialId, events, rows } = seeding;
  let station = await holdSeededStation(tx, organizationId, wanted.seed);
  if (station === undefined) {
    station = await createStation(tx, { organizationId, filialId, ...wanted });
    events.push(seededEvent(organizationId, "station_created", "station", station.station_id));
    rows.push(stationPut(station, REGISTRY));
  }
  const stationId = station.station_id;
  const seededDevices: Seeded["stations"][number]["devices"] = [];
  for (const device of wanted.devices) seededDevices.push(await seedDevice(seeding, stationId, device));
  return { stationId, name: station.name, devices: seededDevices };
}

async function seedDevice(
  { tx, organizationId, codeKey, events, rows }: Seeding,
  stationId: number,
  wanted: { readonly kind: DeviceKind; readonly name: string; readonly handoffTarget: string },
): Promise<Seeded["stations"][number]["devices"][number]> {
  let device = await devices.getDeviceOfKind(tx, stationId, wanted.kind);
  if (device === undefined) {
    const capabilities = capabilitiesFor(wanted.kind, undefined);
    device = await devices.registerDevice(tx, { organizationId, stationId, capabilities, ...wanted });
    events.push(seededEvent(organizationId, "device_registered", "device", device.device_id));
    rows.push(devicePut(device, REGISTRY));
  }
  const { device_id: deviceId, name, kind } = device;
  if (device.status !== "pending") return { deviceId, name, kind, enrollmentCode: null };
  // Read again under a lock, because the device may have claimed its code meanwhile.
  const locked = await devices.lockDevice(tx, organizationId, deviceId);
  if (locked?.status !== "pending") return { deviceId, name, kind, enrollmentCode: null };
  const lifetimeMs = REGISTRY_LIMITS.sandboxCodeLifetimeMs;
  const { code, event } = await issueCode(tx, { key: codeKey, device: locked, lifetimeMs, actor: OPERATOR });
  events.push(event);
  return { deviceId, name, kind, enrollmentCode: code };
}

async function seedUser({ tx, organizationId, events, rows }: Seeding, user: PreparedUser): Promise<void> {
  const known = await getUserByEmail(tx, user.email);
  if (known !== undefined && known.organization_id !== organizationId) {
    throw new RefusedError({ code: "conflict", detail: `${user.email} belongs to another organization.` });
  }
  if (user.passwordHash === undefined) return;
  if (known === undefined) {
    const { email, name, role, passwordHash } = user;
    const made = await createUser(tx, { organizationId, email, name, role, passwordHash });
    if (made === undefined) throw new RefusedError({ code: "already_exists" });
    events.push(seededEvent(organizationId, "user_created", "user", made.user_id));
    return;
  }
  // Ends the sessions that began with the old password.
  await setPasswordHash(tx, known.user_id, user.passwordHash);
  events.push(seededEvent(organizationId, "user_password_changed", "user", known.user_id));
  rows.push(...sessionDeletes(known.user_id, await endSessions(tx, known.user_id)));
}

function seededEvent(organizationId: number, action: string, kind: SubjectKind, id: number): RegistryEvent {
  return { organizationId, actor: OPERATOR, action, subject: { kind, id }, data: { seeded: true } };
}
