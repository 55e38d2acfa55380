/** Counts log-in attempts in PostgreSQL, so that the limits hold over all processes and restarts. */
import { createHash } from "node:crypto";
import { RateLimiterPostgres, RateLimiterRes } from "rate-limiter-flexible";
import { RefusedError } from "../bus/refusals.ts";
import type { Database } from "../db/pool.ts";
import { LOGIN_LIMITS } from "./limits.ts";
import { canonicalEmail } from "./sql/users.ts";

export interface LoginAttempt {
  /** Where it comes from, as the gateway sees it. */
  readonly address: string;
  readonly email: string;
}

export interface LoginThrottle {
  /** Counts an attempt, of an unknown account just as of a known one; throws `login_throttled` when there were too many. */
  readonly consume: (attempt: LoginAttempt) => Promise<void>;
  /** A log-in that succeeded gives the account's attempts from that address back. */
  readonly succeeded: (attempt: LoginAttempt) => Promise<void>;
}

export function createLoginThrottle(sql: Database): LoginThrottle {
  const storeClient = { query: (query: SqlText) => runQuery(sql, query) };
  const limiter = (keyPrefix: string, limit: { readonly attempts: number; readonly windowSeconds: number }) =>
    new RateLimiterPostgres({
      storeClient,
      storeType: "client",
      tableName: "login_attempts",
      // The migrations make the table and the service's housekeeping clears it.
      tableCreated: true,
      clearExpiredByTimeout: false,
      keyPrefix,
      points: limit.attempts,
      duration: limit.windowSeconds,
    });
  const perAddress = limiter("address", LOGIN_LIMITS.perAddress);
  const perAccountAndAddress = limiter("account-address", LOGIN_LIMITS.perAccountAndAddress);
  const perAccount = limiter("account", LOGIN_LIMITS.perAccount);

  return {
    consume: async (attempt) => {
      const keys = keysOf(attempt);
      await consume(perAddress, keys.address);
      await consume(perAccountAndAddress, keys.accountAndAddress);
      await consume(perAccount, keys.account);
    },
    succeeded: async (attempt) => {
      const keys = keysOf(attempt);
      await perAccountAndAddress.delete(keys.accountAndAddress);
      await perAccount.reward(keys.account, 1);
    },
  };
}

/** Hashed, because an address of a mail box or of a client is nothing to keep, and may be of any length. */
function keysOf(attempt: LoginAttempt): Record<"address" | "account" | "accountAndAddress", string> {
  const email = canonicalEmail(attempt.email);
  return {
    address: digest(attempt.address),
    account: digest(email),
    accountAndAddress: digest(`${email}\n${attempt.address}`),
  };
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

async function consume(limiter: RateLimiterPostgres, key: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    throw new RefusedError({ code: "login_throttled", retryAfterMs: error.msBeforeNext });
  }
}

interface SqlText {
  readonly text: string;
  readonly values: readonly (string | number | null)[];
}

/** The library speaks to `pg`; this is the one call that it makes there. */
async function runQuery(sql: Database, query: SqlText): Promise<{ rows: object[]; rowCount: number }> {
  const rows = await sql.unsafe(query.text, [...query.values], { prepare: true });
  return { rows: [...rows], rowCount: rows.count };
}
