/**
 * How many refused callbacks are recorded. The right ones are never counted, so that nobody can keep a provider's money
 * out by sending wrong ones from the same address.
 */
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { PROVIDER_LIMITS } from "../limits.ts";

export interface RefusalThrottle {
  /** Whether one more may be recorded now. */
  admits(source: { readonly address: string; readonly configId: number }): Promise<boolean>;
}

export function createRefusalThrottle(): RefusalThrottle {
  const { refusalsPerProcess, refusalsPerSource, refusalWindowSeconds: duration } = PROVIDER_LIMITS;
  const all = new RateLimiterMemory({ points: refusalsPerProcess, duration });
  // Asked second: so it never holds more sources than the first admits in one window.
  const bySource = new RateLimiterMemory({ points: refusalsPerSource, duration });
  return {
    async admits({ address, configId }) {
      if (await isOver(bySource, `${configId} ${address}`)) return false;
      return (await taken(all, "all")) && (await taken(bySource, `${configId} ${address}`));
    },
  };
}

/** Looked at first and without counting, so that one loud source does not use up what is for all. */
async function isOver(limiter: RateLimiterMemory, key: string): Promise<boolean> {
  const state = await limiter.get(key);
  return state !== null && state.consumedPoints >= limiter.points;
}

async function taken(limiter: RateLimiterMemory, key: string): Promise<boolean> {
  try {
    await limiter.consume(key);
    return true;
  } catch (error) {
    if (error instanceof RateLimiterRes) return false;
    throw error;
  }
}
