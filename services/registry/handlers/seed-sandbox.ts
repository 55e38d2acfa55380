import type { Actor } from "../../../machines/actor.ts";
import type { DeviceKind } from "../../../machines/station/state.ts";
import type { seedSandbox } from "../../bus/messages/sandbox.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { insertOutboxRows, type OutboxKey, type OutboxRow, stationKey } from "../../db/outbox.ts";
import type { Transaction } from "../../db/pool.ts";
import { devicePut, flush, sessionDeletes, stationPut } from "../announce.ts";
import { capabilitiesFor } from "../capabilities.ts";
import type { RegistryDeps } from "../deps.ts";
import { issueCode } from "../issue-code.ts";
import { REGISTRY_LIMITS } from "../limits.ts";
import { SANDBOX, type SandboxStation, type SandboxUser } from "../sandbox.ts";
import { showEnrollmentCode } from "../secrets/enrollment-code.ts";
import { OPERATOR_PARTY } from "../secrets/password.ts";
import * as devices from "../sql/devices.ts";
import { firstFilial, insertFilial } from "../sql/filials.ts";
import { findSandboxOrganization, insertOrganization, lockSeeding } from "../sql/organizations.ts";
import { OPERATOR, type RegistryEvent, recordEvent, type SubjectKind } from "../sql/registry-events.ts";
import { endSessions } from "../sql/sessions.ts";
import { findSeededStation, insertStation } from "../sql/stations.ts";
import { findUserByEmail, insertUser, setPasswordHash } from "../sql/users.ts";

/** The registry itself acts here, on behalf of whoever operates the installation. */
const REGISTRY: Actor = { kind: "registry", id: 0 };

type Seeded = ReplyOf<typeof seedSandbox>;

interface Seeding {
  readonly tx: Transaction;
  readonly organizationId: number;
  readonly filialId: number;
  readonly codeKey: string | undefined;
  /** What was done; written after every row lock (`recordEvent`). */
  readonly events: RegistryEvent[];
  /** What the bus must hear; written last, because that takes locks (`insertOutbox`). */
  readonly rows: OutboxRow[];
}

/**
 * Makes the sandbox, or what of it is missing. A second run keeps every id, sets the passwords to those given, and
 * issues a fresh code to each device that is still pending. What was closed or revoked is made anew.
 */
export async function handleSeedSandbox(deps: RegistryDeps, request: RequestOf<typeof seedSandbox>): Promise<Seeded> {
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
    const organizationId = (await findSandboxOrganization(tx)) ?? (await createOrganization(tx, events));
    const filialId =
      (await firstFilial(tx, organizationId))?.filial_id ?? (await createFilial(tx, organizationId, events));
    const seeding: Seeding = { tx, organizationId, filialId, codeKey: deps.settings.ENROLLMENT_CODE_KEY, events, rows };
    const stations: Seeded["stations"] = [];
    for (const station of SANDBOX.stations) stations.push(await seedStation(seeding, station));
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
  // Also what an earlier run wrote: whoever seeds goes on to use these stations.
  const keys = new Set<OutboxKey>([
    ...rows.map((row) => row.key),
    ...seeded.stations.map((station) => stationKey(station.stationId)),
  ]);
  await flush(deps, ...keys);
  return seeded;
}

interface PreparedUser extends SandboxUser {
  /** Undefined when the stored hash already fits the password given. */
  readonly passwordHash: string | undefined;
}

/** Hashing takes a while, so it is done before the transaction. */
async function preparePassword(deps: RegistryDeps, user: SandboxUser, password: string): Promise<PreparedUser> {
  const known = await findUserByEmail(deps.sql, user.email);
  const passwordHash = await deps.passwords.hold(OPERATOR_PARTY, async (checks) =>
    (await checks.verify(known?.password_hash, password)) ? undefined : checks.hash(password),
  );
  return { ...user, passwordHash };
}

async function createOrganization(tx: Transaction, events: RegistryEvent[]): Promise<number> {
  const organizationId = await insertOrganization(tx, { name: SANDBOX.organization, sandbox: true });
  events.push(seededEvent(organizationId, "organization_created", "organization", organizationId));
  return organizationId;
}

async function createFilial(tx: Transaction, organizationId: number, events: RegistryEvent[]): Promise<number> {
  const { filial_id: filialId } = await insertFilial(tx, organizationId, SANDBOX.filial);
  events.push(seededEvent(organizationId, "filial_created", "filial", filialId));
  return filialId;
}

async function seedStation(seeding: Seeding, wanted: SandboxStation): Promise<Seeded["stations"][number]> {
  const { tx, organizationId, filialId, events, rows } = seeding;
  let station = await findSeededStation(tx, organizationId, wanted.seed);
  if (station === undefined) {
    station = await insertStation(tx, { organizationId, filialId, ...wanted });
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
  let device = await devices.findDeviceOfKind(tx, stationId, wanted.kind);
  if (device === undefined) {
    const capabilities = capabilitiesFor(wanted.kind, undefined);
    device = await devices.insertDevice(tx, { organizationId, stationId, capabilities, ...wanted });
    events.push(seededEvent(organizationId, "device_registered", "device", device.device_id));
    rows.push(devicePut(device, REGISTRY));
  }
  const { device_id: deviceId, name, kind } = device;
  if (device.status !== "pending") return { deviceId, name, kind, enrollmentCode: null };
  // Held, because a code is only touched by whoever holds its device; a claim may just have taken it.
  const held = await devices.lockDevice(tx, organizationId, deviceId);
  if (held?.status !== "pending") return { deviceId, name, kind, enrollmentCode: null };
  const order = { key: codeKey, device: held, lifetimeMs: REGISTRY_LIMITS.sandboxCodeLifetimeMs, actor: OPERATOR };
  const { code, event } = await issueCode(tx, order);
  events.push(event);
  return { deviceId, name, kind, enrollmentCode: showEnrollmentCode(code) };
}

async function seedUser({ tx, organizationId, events, rows }: Seeding, user: PreparedUser): Promise<void> {
  const known = await findUserByEmail(tx, user.email);
  if (known !== undefined && known.organization_id !== organizationId) {
    throw new RefusedError({ code: "conflict", detail: `${user.email} belongs to another organization.` });
  }
  if (user.passwordHash === undefined) return;
  if (known === undefined) {
    const { email, name, role, passwordHash } = user;
    const made = await insertUser(tx, { organizationId, email, name, role, passwordHash });
    if (made === undefined) throw new RefusedError({ code: "already_exists" });
    events.push(seededEvent(organizationId, "user_created", "user", made.user_id));
    return;
  }
  // Whoever logged in with the old password is out.
  await setPasswordHash(tx, known.user_id, user.passwordHash);
  events.push(seededEvent(organizationId, "user_password_changed", "user", known.user_id));
  rows.push(...sessionDeletes(known.user_id, await endSessions(tx, known.user_id)));
}

function seededEvent(organizationId: number, action: string, kind: SubjectKind, id: number): RegistryEvent {
  return { organizationId, actor: OPERATOR, action, subject: { kind, id }, data: { seeded: true } };
}
