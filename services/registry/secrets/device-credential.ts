/** Device credentials: `dp_<partition, 2 hex>_<256 random bits>` (design §4, "credential"). */
import { randomBytes } from "node:crypto";
import { partitionOf, partitionToken } from "../../../machines/partition.ts";
import type { DeviceKind } from "../../../machines/station/state.ts";
import { hashSecret } from "./secret-hash.ts";

/** What a device of each kind may ask for. */
const SCOPES: Readonly<Record<DeviceKind, readonly string[]>> = {
  smart_pos_companion: ["device:read", "device:heartbeat", "assignment:read", "assignment:report"],
  customer_display: ["device:read", "device:heartbeat", "display:read"],
};

export function scopesOf(kind: DeviceKind): string[] {
  return [...SCOPES[kind]];
}

/**
 * A new credential. It names its station's partition, so that a load balancer can pick the gateway that follows it
 * (design §3); only the hash is kept.
 */
export function mintDeviceCredential(stationId: number): { readonly credential: string; readonly hash: Buffer } {
  const credential = `dp_${partitionToken(partitionOf(stationId))}_${randomBytes(32).toString("base64url")}`;
  return { credential, hash: hashSecret(credential) };
}
