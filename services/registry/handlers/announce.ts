/** What the registry knows, for a bus that has lost its newest data. Served on the bus only, for the relay. */
import { STATE_LIMITS } from "../../../machines/settings.ts";
import type {
  announceCredentials,
  announceSessions,
  announceStations,
  announceSwitches,
} from "../../bus/messages/announce.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import { deviceDescription, stationDescription, switchEntry } from "../announce.ts";
import type { RegistryDeps } from "../deps.ts";
import { permissionsOf } from "../permissions.ts";
import { devicesOfStations, pageOfCredentials, pageOfSessions, pageOfStations } from "../sql/announced.ts";
import { pageOfSwitches } from "../sql/kill-switches.ts";

/** A page is cut where a message would be too long; what was cut is the next page. */
export async function handleAnnounceStations(
  { sql }: Pick<RegistryDeps, "sql">,
  { sinceId, limit }: RequestOf<typeof announceStations>,
): Promise<ReplyOf<typeof announceStations>> {
  const stations = await pageOfStations(sql, { sinceId, limit: limit + 1 });
  const ids = stations.map((station) => station.station_id);
  const devices = Map.groupBy(await devicesOfStations(sql, ids, STATE_LIMITS.revokedDevices), (row) => row.station_id);
  const found = stations.map((row) => ({
    stationId: row.station_id,
    station: stationDescription(row),
    devices: (devices.get(row.station_id) ?? []).map(deviceDescription),
  }));
  const { page, hasMore } = firstPage(found, limit);
  return { stations: page, hasMore };
}

export async function handleAnnounceCredentials(
  { sql }: Pick<RegistryDeps, "sql">,
  { sinceId, limit }: RequestOf<typeof announceCredentials>,
): Promise<ReplyOf<typeof announceCredentials>> {
  const rows = await pageOfCredentials(sql, { sinceId, limit: limit + 1 });
  const found = rows.map((row) => {
    const entry = { deviceId: row.device_id, stationId: row.station_id, scopes: row.scopes };
    return { id: row.credential_id, hash: row.hash, entry: row.is_valid ? entry : null };
  });
  const { page, hasMore } = firstPage(found, limit);
  return { entries: page, hasMore };
}

export async function handleAnnounceSessions(
  { sql }: Pick<RegistryDeps, "sql">,
  { sinceId, limit }: RequestOf<typeof announceSessions>,
): Promise<ReplyOf<typeof announceSessions>> {
  const rows = await pageOfSessions(sql, { sinceId, limit: limit + 1 });
  const found = rows.map((row) => {
    const { session_id: sessionId, user_id: userId, organization_id: organizationId, name, role } = row;
    const expiresAtMs = row.expires_at.getTime();
    const entry = { sessionId, expiresAtMs, userId, name, organizationId, role, permissions: permissionsOf(role) };
    return { id: sessionId, hash: row.hash, entry: row.is_open ? entry : null };
  });
  const { page, hasMore } = firstPage(found, limit);
  return { entries: page, hasMore };
}

export async function handleAnnounceSwitches(
  { sql }: Pick<RegistryDeps, "sql">,
  { sinceId, limit }: RequestOf<typeof announceSwitches>,
): Promise<ReplyOf<typeof announceSwitches>> {
  const rows = await pageOfSwitches(sql, { sinceId, limit: limit + 1 });
  const found = rows.map((row) => ({ id: row.switch_id, entry: switchEntry(row) }));
  const { page, hasMore } = firstPage(found, limit);
  return { entries: page, hasMore };
}
