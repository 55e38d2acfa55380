/** The station lease for the wire. */
import type { z } from "zod";
import type { LeaseHolder, LostLease } from "../../../machines/lease.ts";
import type { StationState } from "../../../machines/station/state.ts";
import type { leaseHolderSchema, leaseSchema, lostLeaseSchema } from "../../contract/cashier.ts";
import { toTimestamp } from "../../http/shared-schemas.ts";

interface Reader {
  readonly userId: number;
  readonly nowMs: number;
}

export function stationLeaseWire(
  state: Pick<StationState, "lease" | "lostLease">,
  reader: Reader,
): z.infer<typeof leaseSchema> {
  return { lease: leaseWire(state.lease, reader), lost_lease: lostLeaseWire(state.lostLease, reader) };
}

/** Null for a free station, and for a lease whose deadline has passed before the host could commit that. */
export function leaseWire(lease: LeaseHolder | null, reader: Reader): z.infer<typeof leaseHolderSchema> | null {
  if (lease === null || lease.expiresAtMs <= reader.nowMs) return null;
  return {
    cashier_id: lease.cashierId,
    cashier_name: lease.cashierName,
    acquired_at: toTimestamp(lease.acquiredAtMs),
    expires_at: toTimestamp(lease.expiresAtMs),
    mine: lease.cashierId === reader.userId,
  };
}

export function lostLeaseWire(
  lost: LostLease | null,
  { userId }: Pick<Reader, "userId">,
): z.infer<typeof lostLeaseSchema> | null {
  if (lost === null) return null;
  const { cashierId, cashierName, reason, byName, atMs } = lost;
  return {
    cashier_id: cashierId,
    cashier_name: cashierName,
    reason,
    by_name: byName,
    at: toTimestamp(atMs),
    mine: cashierId === userId,
  };
}
