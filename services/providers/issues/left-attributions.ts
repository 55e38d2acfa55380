/** Takes up attributions that a crash has left: the money may have been settled, and the issue must say so. */
import { UnavailableError } from "../../bus/refusals.ts";
import type { ProvidersDeps } from "../deps.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { listLeftAttributions } from "../sql/issues.ts";
import { finishAttribution } from "./finish-attribution.ts";

/**
 * Returns what takes up some of them at each turn, all by turns, so that none that cannot be finished keeps the others waiting.
 * A turn throws `AggregateError` when it has failed with any; it ends with the first for which nobody has answered.
 */
export function leftAttributions(deps: ProvidersDeps): () => Promise<void> {
  const { attributionLeftMs: olderThanMs, attributionsPerTurn: limit } = PROVIDER_LIMITS;
  let afterId = 0;
  return async () => {
    const left = await listLeftAttributions(deps.database, { olderThanMs, afterId, limit });
    const failed = new Map<number, unknown>();
    for (const key of left) {
      const { issueId } = key;
      afterId = issueId;
      try {
        const { issue, refusal } = await finishAttribution(deps, key);
        const facts = { issueId, status: issue.status, notAttributed: refusal };
        deps.log.info(facts, "an attribution that was left is finished");
      } catch (error) {
        failed.set(issueId, error);
        if (error instanceof UnavailableError) break;
      }
    }
    // The last one there is: from the beginning again.
    if (left.length < limit && afterId === (left.at(-1)?.issueId ?? afterId)) afterId = 0;
    if (failed.size === 0) return;
    throw new AggregateError(
      failed.values(),
      `The attributions of issues ${[...failed.keys()].join()} cannot be finished.`,
    );
  };
}
