/**
 * Limits how many of the registry's database connections log-ins and enrollments use. Anyone can send these requests, so
 * a flood of them must leave connections to kill switches, suspensions and everything else that the registry answers.
 *
 *   lane      parties        statements
 *   known     organizations  those for people at known places, and for a right password or code
 *   look-ups  addresses      one read that finds whether a caller is known, or a code is right
 *   others    addresses      the counts of attempts from unknown places
 *
 * Within a lane the parties take turns (services/runtime/fair-slots.ts).
 */
import { addressBlock } from "../bus/address-block.ts";
import { RefusedError } from "../bus/refusals.ts";
import { DATABASE_LIMITS } from "../db/limits.ts";
import { FairSlots } from "../runtime/fair-slots.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import type { Party } from "./passwords.ts";

export interface DatabaseShares {
  /** Runs statements of a party when it is its turn. Throws `busy`, before anything was done, when the turn does not come. */
  readonly run: <T>(party: Party, work: () => Promise<T>) => Promise<T>;
  /** The same for the one read of a request from that address. */
  readonly lookUp: <T>(address: string, read: () => Promise<T>) => Promise<T>;
}

/** `connections` is how many the pool may open. */
export function createDatabaseShares(connections: number = DATABASE_LIMITS.maxConnections): DatabaseShares {
  const { of, waiting, waitingPerParty, maxWaitMs } = REGISTRY_LIMITS.databaseShares;
  const lane = (share: number): FairSlots<string> => {
    const total = Math.max(1, Math.floor(connections * share));
    return new FairSlots({ total, perKey: Math.max(1, total - 1), waiting, waitingPerKey: waitingPerParty });
  };
  const lanes = { known: lane(of.known), others: lane(of.others) };
  const lookUps = lane(of.lookUps);
  const inTurn = async <T>(slots: FairSlots<string>, key: string, work: () => Promise<T>): Promise<T> => {
    const release = await slots.acquire(key, maxWaitMs);
    if (release === undefined) throw new RefusedError({ code: "busy", retryAfterMs: REGISTRY_LIMITS.passwordRetryMs });
    try {
      return await work();
    } finally {
      release();
    }
  };
  return {
    run: (party, work) => inTurn(lanes[party.lane], party.key, work),
    lookUp: (address, read) => inTurn(lookUps, addressBlock(address), read),
  };
}
