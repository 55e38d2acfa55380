/** Takes up attributions that a crash has left: the money may have been settled, and the issue must say so. */
import type { ProvidersDeps } from "../deps.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { listLeftAttributions } from "../sql/issues.ts";
import { finishAttribution } from "./finish-attribution.ts";

export async function finishLeftAttributions(deps: ProvidersDeps): Promise<void> {
  const { attributionLeftMs, attributionsPerTurn } = PROVIDER_LIMITS;
  for (const key of await listLeftAttributions(deps.database, attributionLeftMs, attributionsPerTurn)) {
    const { issue, refusal } = await finishAttribution(deps, key);
    deps.log.info({ issueId: key.issueId, status: issue.status, refusal }, "an attribution that was left is finished");
  }
}
