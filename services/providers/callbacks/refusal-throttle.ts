/**
 * How refused callbacks are counted, after the signature was looked at. The right ones are never counted, so that nobody
 * keeps a provider's money out by sending wrong ones from the same address.
 *
 * Answering and recording have separate budgets. What is answered goes by address and config, whether that exists or not,
 * so that the answers do not tell which one does. What is recorded goes by process, and callbacks for configs that do not
 * exist have a small budget of their own: they cannot use up what the refusals of real ones are recorded with.
 */
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { addressBlock } from "../../bus/address-block.ts";
import { CALLBACK_REFUSAL_RATE } from "../../bus/messages/callbacks.ts";
import { PROVIDER_LIMITS } from "../limits.ts";

export interface RefusedSource {
  /** Counts as its block (services/bus/address-block.ts). */
  readonly address: string;
  readonly configId: number;
  readonly isConfigKnown: boolean;
}

export interface RefusalVerdict {
  /** 0, or after how long this source is answered again as anybody else. */
  readonly throttledForMs: number;
  /** Whether this one is to be recorded. */
  readonly isRecorded: boolean;
}

export interface RefusalThrottle {
  /** Counts one refused callback. */
  count(source: RefusedSource): Promise<RefusalVerdict>;
}

export function createRefusalThrottle(): RefusalThrottle {
  const { refusals: ofSource, windowMs } = CALLBACK_REFUSAL_RATE;
  const { refusalsAnswered, refusalsRecorded, unknownRefusalsRecorded } = PROVIDER_LIMITS;
  const limiter = (points: number) => new RateLimiterMemory({ points, duration: windowMs / 1_000 });
  // Asked before the one by source, which so never holds more sources than this admits in one window.
  const answered = limiter(refusalsAnswered);
  const bySource = limiter(ofSource);
  const recorded = { known: limiter(refusalsRecorded), unknown: limiter(unknownRefusalsRecorded) };
  return {
    async count({ address, configId, isConfigKnown }) {
      const key = `${configId} ${addressBlock(address)}`;
      // A source that is throttled already uses up nothing of what is for all.
      const waitMs = (await leftMs(bySource, key)) || (await take(answered)) || (await take(bySource, key));
      if (waitMs > 0) return { throttledForMs: waitMs, isRecorded: false };
      const isRecorded = (await take(isConfigKnown ? recorded.known : recorded.unknown)) === 0;
      return { throttledForMs: 0, isRecorded };
    },
  };
}

/** How long a source has to wait already; looked at without counting. */
async function leftMs(limiter: RateLimiterMemory, key: string): Promise<number> {
  const state = await limiter.get(key);
  return state !== null && state.consumedPoints >= limiter.points ? waitOf(state) : 0;
}

/** Takes one; 0, or how long until there is one again. */
async function take(limiter: RateLimiterMemory, key = "all"): Promise<number> {
  try {
    await limiter.consume(key);
    return 0;
  } catch (error) {
    if (error instanceof RateLimiterRes) return waitOf(error);
    throw error;
  }
}

const waitOf = ({ msBeforeNext }: RateLimiterRes): number => Math.max(1, msBeforeNext);
