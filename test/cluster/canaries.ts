/** Devices that the owner revokes during a fault, one for each fault: after the revocation no gateway may answer them. */
import { setTimeout as delay } from "node:timers/promises";
import { addDevices } from "../chaos/chaos-world.ts";
import type { ApiClient } from "../support/api-client.ts";
import type { Refused } from "../support/http.ts";
import type { ClusterWorld } from "./cluster-world.ts";
import { STALE_AFTER_MS } from "./stale-answers.ts";

/** The owner revokes the device this long after the start of the fault, which may have cut off a gateway by then. */
const REVOKED_AFTER_MS = 500;
/** The throttle of a credential allows no shorter pause between polls. */
const POLL_MS = 1_050;
const REPEAT_MS = 250;
const ATTEMPT_MS = 5_000;
/** A revocation during the fault becomes effective this long after the fault at most: an election may be needed. */
const EFFECTIVE_WITHIN_MS = 12_000;
/** The state of a station has room for no more devices. */
const CANARIES_PER_STATION = 8;

export interface Canary {
  readonly deviceId: number;
  readonly client: ApiClient;
}

/** Adds devices at stations that no other work of the trial uses. */
export async function addCanaries(world: ClusterWorld, count: number): Promise<readonly Canary[]> {
  const { owner, filialId } = world;
  const canaries: Canary[] = [];
  while (canaries.length < count) {
    const body = { filial_id: filialId, name: "Canaries", currency: "EUR" };
    const { station_id: stationId } = await owner.good<{ station_id: number }>("POST", "stations/", { body });
    const missing = Math.min(CANARIES_PER_STATION, count - canaries.length);
    const makers = { system: { baseUrl: world.gateways[0] }, owner };
    // The number of an address from which no other device has enrolled.
    const nth = 2 * world.stations.length + canaries.length;
    canaries.push(...(await addDevices(makers, { stationId, kind: "customer_display", count: missing, nth })));
  }
  return canaries;
}

/**
 * Revokes the canary, and polls each gateway as this device until the signal reports the end of the fault and the revocation
 * is effective. Returns a sentence for each answer that no gateway may give: an answer to the revoked device, or 401 before
 * the revocation.
 */
export async function watchCanary(world: ClusterWorld, canary: Canary, signal: AbortSignal): Promise<string[]> {
  const sentences: string[] = [];
  let isAsked = false;
  const asked = new AbortController();
  let revokedAtMs = Number.POSITIVE_INFINITY;
  let lastAttemptMs = Number.POSITIVE_INFINITY;
  signal.addEventListener("abort", () => {
    lastAttemptMs = performance.now() + EFFECTIVE_WITHIN_MS;
  });
  const revoke = async (): Promise<void> => {
    await pause(REVOKED_AFTER_MS, signal);
    isAsked = true;
    for (let nth = 0; performance.now() < lastAttemptMs && !Number.isFinite(revokedAtMs); nth += 1) {
      const owner = world.owner.at(world.gateways[nth % world.gateways.length] as string);
      const path = `devices/${canary.deviceId}/revoke/`;
      const answer = await owner.call("POST", path, { timeoutMs: ATTEMPT_MS }).catch(() => undefined);
      // 202: stored, and not effective yet.
      if (answer?.status === 200) revokedAtMs = performance.now();
      else await delay(REPEAT_MS);
    }
    asked.abort();
  };
  const watch = async (gateway: string): Promise<void> => {
    const client = canary.client.at(gateway);
    while (!(signal.aborted && asked.signal.aborted)) {
      const askedAtMs = performance.now();
      const answer = await client.call<Refused>("GET", "me/", { timeoutMs: ATTEMPT_MS }).catch(() => undefined);
      const lateMs = Math.round(askedAtMs - revokedAtMs);
      if (answer?.status === 200 && lateMs > STALE_AFTER_MS) {
        sentences.push(`${gateway} answered device ${canary.deviceId} ${lateMs} ms after it was revoked.`);
      }
      if (answer?.status === 401 && !isAsked) {
        sentences.push(`${gateway} answered device ${canary.deviceId} with ${answer.body.code} before it was revoked.`);
      }
      await pause(POLL_MS, signal);
    }
  };
  await Promise.all([revoke(), ...world.gateways.map(watch)]);
  if (!Number.isFinite(revokedAtMs)) sentences.push(`Device ${canary.deviceId} could not be revoked.`);
  return sentences;
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}
