/**
 * Counts log-in attempts in PostgreSQL, so that the limits hold over all processes and restarts.
 *
 *   An attempt from   counts for
 *   unknown address   the address over all accounts, the account from that address, and the account from all of them
 *   known address     the account from that address; attempts from elsewhere do not count
 *   known browser     the account in that browser; other attempts from the same address do not count either
 *   valid session     the session
 *
 * An address is known when this account has logged in from it before. A browser is known when this account has logged in
 * with it: it sends a cookie that no other browser has. So guesses from elsewhere can block a person's log-in from a new
 * address while the guesses go on, but never from the restaurant. Accounts that do not exist are counted in the same way;
 * they have no known addresses. An attacker who shares a known address with a person can find out that the person has
 * logged in there, at the cost of a whole budget.
 */
import { createHash } from "node:crypto";
import { RateLimiterPostgres, RateLimiterRes } from "rate-limiter-flexible";
import { addressBlock } from "../bus/address-block.ts";
import { RefusedError } from "../bus/refusals.ts";
import type { Database } from "../db/pool.ts";
import { LOGIN_LIMITS } from "./limits.ts";
import { canonicalEmail } from "./sql/users.ts";

export interface LoginAttempt {
  /** The client's address, from the gateway. Counts as its block (services/bus/address-block.ts). */
  readonly address: string;
  readonly email: string;
  /** Whether the account has logged in from there before. */
  readonly isKnownAddress: boolean;
  /** A browser in which the account has logged in before; then the address does not count. */
  readonly browserHash?: Buffer | undefined;
}

export interface LoginThrottle {
  /**
   * Counts an attempt, also for an account that does not exist. Throws `login_throttled` when there were too many.
   * Resolves to the number of attempts that the account has left at this place.
   */
  readonly consume: (attempt: LoginAttempt) => Promise<number>;
  /** Resets the account's attempts at that place, after a log-in that succeeded. */
  readonly succeeded: (attempt: LoginAttempt) => Promise<void>;
  /** Counts an attempt of a person with a valid session to prove their password; throws `login_throttled`. */
  readonly consumeOfSession: (sessionId: number) => Promise<void>;
}

export function createLoginThrottle(sql: Database): LoginThrottle {
  const storeClient = { query: (query: SqlText) => runQuery(sql, query) };
  const limiter = (keyPrefix: string, limit: { readonly attempts: number; readonly windowSeconds: number }, most = 0) =>
    new RateLimiterPostgres({
      storeClient,
      storeType: "client",
      tableName: "login_attempts",
      // The migrations make the table, and the retention job clears it.
      tableCreated: true,
      clearExpiredByTimeout: false,
      keyPrefix,
      points: limit.attempts,
      duration: limit.windowSeconds,
      // After this many attempts the process refuses the rest of the window from memory.
      inMemoryBlockOnConsumed: most,
    });
  const perAddress = limiter("address", LOGIN_LIMITS.perAddress, LOGIN_LIMITS.writesPerAddress);
  const perAccountAndPlace = limiter("account-place", LOGIN_LIMITS.perAccountAndAddress);
  const perAccount = limiter("account", LOGIN_LIMITS.perAccount);
  const perKnownPlace = limiter("known-place", LOGIN_LIMITS.perKnownAddress);
  const perSession = limiter("session", LOGIN_LIMITS.perSession);

  return {
    consume: async (attempt) => {
      const keys = keysOf(attempt);
      if (isKnownPlace(attempt)) {
        await consume(perKnownPlace, keys.accountAndPlace);
        return consume(perAccountAndPlace, keys.accountAndPlace);
      }
      // In this order, so that an address without attempts left uses up none of the account's.
      await consume(perAddress, keys.address);
      const left = await consume(perAccountAndPlace, keys.accountAndPlace);
      await consume(perAccount, keys.account);
      return left;
    },
    succeeded: async (attempt) => {
      const keys = keysOf(attempt);
      await perAccountAndPlace.delete(keys.accountAndPlace);
      if (!isKnownPlace(attempt)) await perAccount.reward(keys.account, 1);
    },
    consumeOfSession: async (sessionId) => {
      await consume(perSession, String(sessionId));
    },
  };
}

function isKnownPlace({ isKnownAddress, browserHash }: LoginAttempt): boolean {
  return isKnownAddress || browserHash !== undefined;
}

/** Hashed, because e-mail addresses and client addresses must not be stored here, and may be of any length. */
function keysOf(attempt: LoginAttempt): Record<"address" | "account" | "accountAndPlace", string> {
  const email = canonicalEmail(attempt.email);
  const block = addressBlock(attempt.address);
  return {
    address: digest(block),
    account: digest(email),
    accountAndPlace: digest(`${email}\n${attempt.browserHash?.toString("hex") ?? block}`),
  };
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

async function consume(limiter: RateLimiterPostgres, key: string): Promise<number> {
  try {
    return (await limiter.consume(key)).remainingPoints;
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    throw new RefusedError({ code: "login_throttled", retryAfterMs: error.msBeforeNext });
  }
}

interface SqlText {
  readonly text: string;
  readonly values: readonly (string | number | null)[];
}

/** The library expects a client of `pg`; this is the only call that it makes to the client. */
async function runQuery(sql: Database, query: SqlText): Promise<{ rows: object[]; rowCount: number }> {
  const rows = await sql.unsafe(query.text, [...query.values], { prepare: true });
  return { rows: [...rows], rowCount: rows.count };
}
