/** The station lease for the wire. */
import type { z } from "zod";
import type { LeaseHolder } from "../../../machines/lease.ts";
import type { leaseHolderSchema } from "../../contract/cashier.ts";
import { toTimestamp } from "../../contract/shared.ts";

/** Null for a free station, and for a lease whose deadline has passed before the host could commit that. */
export function leaseWire(
  lease: LeaseHolder | null,
  facts: { readonly userId: number; readonly nowMs: number },
): z.infer<typeof leaseHolderSchema> | null {
  if (lease === null || lease.expiresAtMs <= facts.nowMs) return null;
  return {
    cashier_id: lease.cashierId,
    cashier_name: lease.cashierName,
    acquired_at: toTimestamp(lease.acquiredAtMs),
    expires_at: toTimestamp(lease.expiresAtMs),
    mine: lease.cashierId === facts.userId,
  };
}
