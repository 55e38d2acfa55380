/** Claims for requests that only one process may carry out (`bus/operation.ts`). */
import type { ClaimRequest } from "../bus/operation.ts";
import { DATABASE_LIMITS } from "./limits.ts";
import type { Database } from "./pool.ts";

/**
 * Claims requests in the database of the service. When a process ends before it has answered, its claim stays. It is
 * unknown how much of the request it has carried out, so no other process may begin it.
 */
export function requestClaims(database: Database): ClaimRequest {
  let removedAtMs = performance.now();
  return async (requestId) => {
    const claimed = await database`
      insert into request_claims (request_id) values (${requestId}) on conflict do nothing`;
    if (performance.now() - removedAtMs >= DATABASE_LIMITS.claimRemovalMs) {
      removedAtMs = performance.now();
      // If this fails, the next removal includes these claims.
      void removeOldClaims(database).catch(() => undefined);
    }
    return claimed.count === 1;
  };
}

async function removeOldClaims(database: Database): Promise<void> {
  await database`
    delete from request_claims where claimed_at < now() - make_interval(secs => ${DATABASE_LIMITS.claimSeconds})`;
}
