/** What an owner's test tells about the endpoint itself: a target that answers it with 410 is gone for deliveries as well. */
import { CLOSED, disabledBy } from "../../../machines/webhook-breaker.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";
import { recordRoboticsTrail, SYSTEM_ACTOR } from "../../db/robotics-trail.ts";
import { type DisabledRow, disableEndpoints } from "../sql/outcomes.ts";

/** The endpoint as it was when the test began; whoever starts it anew meanwhile knows better. */
export interface TestedEndpoint {
  readonly endpointId: number;
  readonly generation: number;
}

/** Undefined when it has been deleted. */
export async function findTested(sql: Queryable, endpointId: number): Promise<TestedEndpoint | undefined> {
  const [row] = await sql<{ generation: number }[]>`
    select generation from webhook_endpoints where endpoint_id = ${endpointId} and deleted_at is null`;
  return row === undefined ? undefined : { endpointId, generation: row.generation };
}

/** Disables it when this answer is one that does so, by the rule of deliveries; undefined when it stays as it is. */
export async function disableIfGone(
  sql: Transaction,
  { endpointId, generation }: TestedEndpoint,
  status: number | null,
): Promise<DisabledRow | undefined> {
  const reason = disabledBy(CLOSED, { status, nowMs: Date.now() });
  if (reason === undefined) return undefined;
  const [disabled] = await disableEndpoints(sql, [
    {
      endpoint_id: endpointId,
      generation,
      consecutive_failures: 0,
      times_opened: 0,
      open_until: null,
      failing_since: null,
      failures_since_success: 0,
      has_succeeded: false,
      has_failed: false,
      disabled_reason: reason,
    },
  ]);
  if (disabled === undefined) return undefined;
  const { organization_id: organizationId, url } = disabled;
  const subject = { kind: "webhook_endpoint", id: endpointId } as const;
  const action = "webhook_endpoint_disabled";
  await recordRoboticsTrail(sql, { organizationId, actor: SYSTEM_ACTOR, action, subject, data: { url, reason } });
  return disabled;
}
