/** Issues whose money has found its order by itself. The trail tells it as nobody's doing. */
import type { Database } from "../../db/pool.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { recordEvents, SYSTEM } from "../sql/events.ts";
import { closeSettled } from "../sql/issues.ts";

export async function closeSettledIssues(database: Database): Promise<void> {
  await database.begin(async (sql) => {
    const closed = await closeSettled(sql, PROVIDER_LIMITS.settledIssuesPerTurn);
    if (closed.length === 0) return;
    const events = closed.map(({ issue_id: id, organization_id: organizationId, kind, reason, transaction_id }) => ({
      organizationId,
      actor: SYSTEM,
      action: "provider_issue_closed",
      subject: { kind: "provider_issue" as const, id },
      data: { kind, reason, transaction_id },
    }));
    await recordEvents(sql, events);
  });
}
