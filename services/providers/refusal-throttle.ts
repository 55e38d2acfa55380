/**
 * Counts refused callbacks, after their signature was checked. Callbacks with a right signature are never counted, so
 * wrong ones from the same address cannot keep a provider's callbacks out.
 *
 * Answers and records have separate budgets. Answers are counted by address and config, whether the config exists or
 * not, so that an answer does not show which configs exist. Records are counted by process. Records for configs that do
 * not exist have a small separate budget, so that they cannot use up the records of real configs.
 */
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { addressBlock } from "../bus/address-block.ts";
import { CALLBACK_REFUSAL_RATE } from "../bus/messages/callbacks.ts";
import { PROVIDER_LIMITS } from "./limits.ts";

interface RefusedSource {
  /** Counts as its block (services/bus/address-block.ts). */
  readonly address: string;
  readonly configId: number;
  readonly isConfigKnown: boolean;
}

export interface RefusalVerdict {
  /** 0, or after how long this source is answered again. */
  readonly throttledForMs: number;
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
  // Counted before `bySource`, so that `bySource` never holds more sources than `answered` admits in one window.
  const answered = limiter(refusalsAnswered);
  const bySource = limiter(ofSource);
  const recorded = { known: limiter(refusalsRecorded), unknown: limiter(unknownRefusalsRecorded) };
  return {
    async count({ address, configId, isConfigKnown }) {
      const key = `${configId} ${addressBlock(address)}`;
      // A throttled source uses up nothing of the shared budget.
      const waitMs = (await leftMs(bySource, key)) || (await take(answered)) || (await take(bySource, key));
      if (waitMs > 0) return { throttledForMs: waitMs, isRecorded: false };
      const isRecorded = (await take(isConfigKnown ? recorded.known : recorded.unknown)) === 0;
      return { throttledForMs: 0, isRecorded };
    },
  };
}

/** How long a source still has to wait. Counts nothing. */
async function leftMs(limiter: RateLimiterMemory, key: string): Promise<number> {
  const state = await limiter.get(key);
  return state !== null && state.consumedPoints >= limiter.points ? waitOf(state) : 0;
}

/** Takes one point. Returns 0, or how long until a point is free again. */
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
