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
/** How long the watch waits for a gateway after that. One that does not answer is another error. */
const DECIDED_WITHIN_MS = 10_000;
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

/** One answer to a poll of a canary. */
interface CanaryAnswer {
  readonly gateway: string;
  readonly askedAtMs: number;
  readonly answeredAtMs: number;
  readonly status: number;
  /** Of 401. */
  readonly code: string | undefined;
}

/** When the revocation was sent, and when it was acknowledged as effective; infinite until then. */
interface Revocation {
  readonly sentAtMs: number;
  readonly effectiveAtMs: number;
}

/** A sentence for each answer that no gateway may give: an answer to the revoked device, or 401 before the revocation. */
export function wrongCanaryAnswers(
  deviceId: number,
  answers: readonly CanaryAnswer[],
  { sentAtMs, effectiveAtMs }: Revocation,
): string[] {
  const sentences = answers.flatMap(({ gateway, askedAtMs, answeredAtMs, status, code }) => {
    const lateMs = Math.round(askedAtMs - effectiveAtMs);
    if (status === 200 && lateMs > STALE_AFTER_MS)
      return [`${gateway} answered device ${deviceId} ${lateMs} ms after it was revoked.`];
    return status === 401 && answeredAtMs < sentAtMs
      ? [`${gateway} answered device ${deviceId} with ${code} before it was revoked.`]
      : [];
  });
  return Number.isFinite(effectiveAtMs) ? sentences : [...sentences, `Device ${deviceId} could not be revoked.`];
}

/**
 * Revokes the canary, and polls each gateway as this device until the signal reports the end of the fault, and until each has
 * answered a poll that it got when it had to know the revocation. Returns the sentences of `wrongCanaryAnswers`.
 */
export async function watchCanary(world: ClusterWorld, canary: Canary, signal: AbortSignal): Promise<string[]> {
  const answers: CanaryAnswer[] = [];
  let sentAtMs = Number.POSITIVE_INFINITY;
  let effectiveAtMs = Number.POSITIVE_INFINITY;
  let isOver = false;
  let lastAttemptMs = Number.POSITIVE_INFINITY;
  signal.addEventListener("abort", () => {
    lastAttemptMs = performance.now() + EFFECTIVE_WITHIN_MS;
  });
  const revoke = async (): Promise<void> => {
    await pause(REVOKED_AFTER_MS, signal);
    sentAtMs = performance.now();
    for (let nth = 0; performance.now() < lastAttemptMs && !Number.isFinite(effectiveAtMs); nth += 1) {
      const owner = world.owner.at(world.gateways[nth % world.gateways.length] as string);
      const path = `devices/${canary.deviceId}/revoke/`;
      const answer = await owner.call("POST", path, { timeoutMs: ATTEMPT_MS }).catch(() => undefined);
      // 202: stored, and not effective yet.
      if (answer?.status === 200) effectiveAtMs = performance.now();
      else await delay(REPEAT_MS);
    }
    isOver = true;
  };
  const watch = async (gateway: string): Promise<void> => {
    const client = canary.client.at(gateway);
    let hasDecided = false;
    const isWatched = (): boolean => {
      if (!signal.aborted || !isOver) return true;
      if (hasDecided || !Number.isFinite(effectiveAtMs)) return false;
      return performance.now() < lastAttemptMs + DECIDED_WITHIN_MS;
    };
    while (isWatched()) {
      const askedAtMs = performance.now();
      const answer = await client.call<Refused>("GET", "me/", { timeoutMs: ATTEMPT_MS }).catch(() => undefined);
      if (answer !== undefined) {
        const { status, body } = answer;
        answers.push({
          gateway,
          askedAtMs,
          answeredAtMs: performance.now(),
          status,
          code: status === 401 ? body.code : undefined,
        });
        // 503 and 429 prove nothing.
        hasDecided ||= askedAtMs > effectiveAtMs + STALE_AFTER_MS && (status === 200 || status === 401);
      }
      await (signal.aborted ? delay(POLL_MS) : pause(POLL_MS, signal));
    }
  };
  await Promise.all([revoke(), ...world.gateways.map(watch)]);
  return wrongCanaryAnswers(canary.deviceId, answers, { sentAtMs, effectiveAtMs });
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}
