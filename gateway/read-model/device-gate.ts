/** Checks the credential, the throttle and the scope of a device's request, from memory and without a promise. */
import { hash } from "node:crypto";
import type { StationLogs } from "../../services/bus/streams.ts";
import type { ErrorCode } from "../http/errors.ts";
import { LIMITS } from "../limits.ts";
import type { CredentialTable } from "./credential-replica.ts";
import { CREDENTIAL_RATE, takeToken } from "./throttles.ts";

/** Why the gate refuses a request. A slot is never negative, so `pass` can return either one without a new object. */
export const SHUT = { stale: -1, missing: -2, invalid: -3, scope: -4, throttled: -5 } as const;

export const SHUT_CODES: Readonly<Record<number, ErrorCode>> = {
  [SHUT.stale]: "replica_stale",
  [SHUT.missing]: "credential_missing",
  [SHUT.invalid]: "credential_invalid",
  [SHUT.scope]: "scope_denied",
  [SHUT.throttled]: "throttled",
};

const BEARER_CHARACTERS = "Bearer ".length;

interface DeviceGateDeps {
  readonly table: CredentialTable;
  readonly isFresh: (nowMs: number) => boolean;
  readonly logs: StationLogs;
  /** Whether the replica of this log is fresh. */
  readonly isLogFresh: (log: number, nowMs: number) => boolean;
  /** False while the table may lack a valid credential, because the bus has lost it. */
  readonly isComplete: () => boolean;
  /** Resolves true once the table has all that was stored before the call, false without a proof in time. */
  readonly waitForNewest: () => Promise<boolean>;
}

export class DeviceGate {
  readonly table: CredentialTable;
  readonly #isFresh: (nowMs: number) => boolean;
  readonly #isComplete: () => boolean;
  readonly #waitForNewest: () => Promise<boolean>;
  readonly #logs: StationLogs;
  readonly #isLogFresh: (log: number, nowMs: number) => boolean;
  /** When the replicas were last found fresh. */
  #freshAtMs = -1;
  /** When the replica of each log was last found fresh. */
  readonly #logFreshAtMs: number[];
  /** When the bucket of the last throttled credential is full again: the refusal's `Retry-After` follows from it. */
  throttledUntilFullAtMs = 0;
  /** Requests that were throttled so far, polls and others. */
  throttledCount = 0;

  constructor({ table, isFresh, logs, isLogFresh, isComplete, waitForNewest }: DeviceGateDeps) {
    this.table = table;
    this.#isFresh = isFresh;
    this.#isComplete = isComplete;
    this.#waitForNewest = waitForNewest;
    this.#logs = logs;
    this.#isLogFresh = isLogFresh;
    this.#logFreshAtMs = Array.from({ length: logs.count }, () => -1);
  }

  /** The credential's slot in the table, or one of `SHUT`. Each request that gets to the throttle takes a token. */
  pass(authorization: string, scopeBit: number, nowMs: number): number {
    // The replicas get stale after seconds, so one check per millisecond is enough, also for several polls.
    if (nowMs !== this.#freshAtMs) {
      if (!this.#isFresh(nowMs)) return SHUT.stale;
      this.#freshAtMs = nowMs;
    }
    if (!isBearer(authorization)) return SHUT.missing;
    if (authorization.length > BEARER_CHARACTERS + LIMITS.credentialCharacters) return SHUT.invalid;
    const { table } = this;
    const slot = this.#find(authorization);
    if (slot < 0) return this.#isComplete() ? SHUT.invalid : SHUT.stale;
    if (!this.#isStationFresh(table.stationId(slot), nowMs)) return SHUT.stale;
    const fullAtMs = takeToken(CREDENTIAL_RATE, table.fullAtMs(slot), nowMs);
    if (fullAtMs < 0) {
      this.throttledUntilFullAtMs = table.fullAtMs(slot);
      this.throttledCount += 1;
      return SHUT.throttled;
    }
    table.setFullAtMs(slot, fullAtMs);
    return (table.scopeMask(slot) & scopeBit) === 0 ? SHUT.scope : slot;
  }

  /**
   * The code for a request for which `pass` has returned `SHUT.invalid`. After `credential_invalid` a device may never send a
   * request again, so the gateway must be certain: another gateway may have enrolled the device a moment ago.
   */
  async whyInvalid(authorization: string): Promise<"credential_invalid" | "replica_stale"> {
    const isNewest = await this.#waitForNewest();
    return isNewest && this.#isComplete() && this.#find(authorization) < 0 ? "credential_invalid" : "replica_stale";
  }

  #find(authorization: string): number {
    return this.table.find(hash("sha256", authorization.slice(BEARER_CHARACTERS), "binary"));
  }

  #isStationFresh(stationId: number, nowMs: number): boolean {
    const { index } = this.#logs.of(stationId);
    if (this.#logFreshAtMs[index] === nowMs) return true;
    if (!this.#isLogFresh(index, nowMs)) return false;
    this.#logFreshAtMs[index] = nowMs;
    return true;
  }
}

/** The scheme's name is case-insensitive (RFC 9110 §11.1). Nearly all clients send `Bearer`: that is compared first. */
function isBearer(authorization: string): boolean {
  if (authorization.length <= BEARER_CHARACTERS) return false;
  return authorization.startsWith("Bearer ") || authorization.slice(0, BEARER_CHARACTERS).toLowerCase() === "bearer ";
}
