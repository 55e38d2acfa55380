/** When a new payment decides, and the work of deciding what is due. */
import type { Database } from "../db/pool.ts";
import { decide, ownDecision } from "./decide.ts";
import { SANDBOX_LIMITS } from "./limits.ts";
import type { Scenario } from "./magic-amounts.ts";
import { setDecidesInMs, takeDeciding } from "./sql/payments.ts";

/** The moment at which a payment of this scenario decides by itself. */
export function decidesAtMs(
  scenario: Scenario,
  { nowMs, expiresAtMs, afterMs }: { readonly nowMs: number; readonly expiresAtMs: number; readonly afterMs: number },
): number {
  if (scenario === "early_callback") return nowMs;
  const waitsForDeadline = scenario === "late_success" || scenario === "never_pays" || scenario === "unknown";
  return waitsForDeadline ? expiresAtMs + SANDBOX_LIMITS.lateMs : nowMs + afterMs;
}

/** Decides what is due; returns how many there were. */
export async function decideDue(database: Database): Promise<number> {
  return await database.begin(async (sql) => {
    const due = await takeDeciding(sql, SANDBOX_LIMITS.decisionsPerTurn);
    for (const payment of due) {
      const decision = ownDecision(payment);
      if (decision === "wait") await setDecidesInMs(sql, payment.payment_id, SANDBOX_LIMITS.longestPaymentMs);
      else await decide(sql, payment, decision);
    }
    return due.length;
  });
}
