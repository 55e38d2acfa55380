/** Database rows as the messages show them; rows themselves never leave the service. */
import type { z } from "zod";
import type { Device } from "../bus/messages/devices.ts";
import type { enrollmentCodeSchema } from "../bus/messages/enrollment-codes.ts";
import type { RegistryEventEntry } from "../bus/messages/events.ts";
import type { filialSchema } from "../bus/messages/filials.ts";
import type { Organization } from "../bus/messages/organizations.ts";
import type { Station } from "../bus/messages/stations.ts";
import type { userSchema } from "../bus/messages/users.ts";
import { permissionsOf } from "./permissions.ts";
import type { DeviceRow } from "./sql/devices.ts";
import type { EnrollmentCodeRow } from "./sql/enrollment-codes.ts";
import type { FilialRow } from "./sql/filials.ts";
import type { OrganizationRow } from "./sql/organizations.ts";
import type { RegistryEventRow } from "./sql/registry-events.ts";
import type { StationRow } from "./sql/stations.ts";
import type { UserRow } from "./sql/users.ts";

export function organizationOnWire(row: OrganizationRow): Organization {
  const { organization_id: organizationId, name, sandbox } = row;
  return { organizationId, name, sandbox, createdAtMs: row.created_at.getTime() };
}

export function filialOnWire(row: FilialRow): z.infer<typeof filialSchema> {
  return { filialId: row.filial_id, name: row.name, createdAtMs: row.created_at.getTime() };
}

export function stationOnWire(row: StationRow): Station {
  return {
    stationId: row.station_id,
    filialId: row.filial_id,
    name: row.name,
    currency: row.currency,
    status: row.status,
    sandbox: row.sandbox,
    createdAtMs: row.created_at.getTime(),
  };
}

export function deviceOnWire(row: DeviceRow): Device {
  return {
    deviceId: row.device_id,
    stationId: row.station_id,
    name: row.name,
    kind: row.kind,
    capabilities: row.capabilities,
    status: row.status,
    handoffTarget: row.handoff_target,
    createdAtMs: row.created_at.getTime(),
    enrolledAtMs: row.enrolled_at?.getTime() ?? null,
  };
}

export function enrollmentCodeOnWire(row: EnrollmentCodeRow): z.infer<typeof enrollmentCodeSchema> {
  return {
    codeId: row.code_id,
    deviceId: row.device_id,
    status: row.status,
    expiresAtMs: row.expires_at.getTime(),
    createdAtMs: row.created_at.getTime(),
  };
}

export function userOnWire(row: UserRow): z.infer<typeof userSchema> {
  return {
    userId: row.user_id,
    email: row.email,
    name: row.name,
    role: row.role,
    permissions: permissionsOf(row.role),
    status: row.status,
  };
}

export function registryEventOnWire(row: RegistryEventRow): RegistryEventEntry {
  return {
    eventId: row.event_id,
    atMs: row.at.getTime(),
    actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name },
    action: row.action,
    subject: { kind: row.subject_kind, id: row.subject_id },
    data: row.data,
  };
}
