/** What the settlement service deletes: the answers and the intents of idempotency keys that are past their retention. */
import type { Retention } from "../runtime/retention.ts";
import type { SettlementDeps } from "./deps.ts";
import { SETTLEMENT_LIMITS } from "./limits.ts";
import { removeIntentRecords } from "./sql/intents.ts";
import { removeOpenings } from "./sql/orders.ts";

const { openingRetentionDays, intentRecordRetentionDays, retention } = SETTLEMENT_LIMITS;

export function keyRetention({ database }: Pick<SettlementDeps, "database">): Retention<"openings" | "intents"> {
  return {
    what: "old idempotency keys",
    ...retention,
    removals: {
      openings: (rows) => removeOpenings(database, { olderThanDays: openingRetentionDays, rows }),
      intents: (rows) => removeIntentRecords(database, { olderThanDays: intentRecordRetentionDays, rows }),
    },
  };
}
