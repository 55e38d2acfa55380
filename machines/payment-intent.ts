/**
 * The payment intent's words and record: one attempt to collect one order's amount over one route. How it moves is in
 * `intent-machine.ts`.
 */
import type { AmountMinor } from "./currency.ts";

/** How the money is collected (design §5). */
export const ROUTES = ["smart_pos", "dynamic_qr", "attested_terminal", "cash"] as const;
export type Route = (typeof ROUTES)[number];

/** Routes that are attested without a device's report: the cashier holds the money or the terminal's slip. */
export function isAttestedDirectly(route: Route): boolean {
  return route === "cash" || route === "attested_terminal";
}

export const REPORTED_OUTCOMES = [
  "reported_success",
  "reported_declined",
  "reported_cancelled",
  "reported_unknown",
] as const;
export type ReportedOutcome = (typeof REPORTED_OUTCOMES)[number];

/** All states inside; `settling` is shown outside as `processing` (design §2.4). */
export const INTENT_STATES = [
  "created",
  "presented",
  "processing",
  "settling",
  "succeeded",
  "cancelled",
  "expired",
] as const;
export type IntentState = (typeof INTENT_STATES)[number];
/** The statuses of the wire (design §4, "intent statuses"). */
export type IntentStatus = Exclude<IntentState, "settling">;

/** One reported outcome: evidence, never truth (contract, "Reported outcome"). */
export interface Report {
  readonly deviceId: number;
  readonly outcome: ReportedOutcome;
  readonly providerReference: string;
  readonly providerCode: string;
  readonly reportedAtMs: number;
  /** Digest of the command that reported it, so that a repetition is known as one. */
  readonly key: string;
}

/** A report whose text the state keeps no more: as much as a repetition of it needs. */
export type FormerReport = Pick<Report, "key" | "outcome" | "reportedAtMs">;

/** Why a provider could not be asked for a QR, or did not give one. */
const PROVIDER_FAILURES = [
  "provider_refused",
  "provider_timed_out",
  "provider_unavailable",
  "provider_answer_invalid",
  "provider_frozen",
  "provider_not_configured",
] as const;
/** How a provider reports that a payment ended and no money moved or will. */
export const PROVIDER_DECLINES = ["payment_declined", "buyer_cancelled", "provider_expired"] as const;
/** Why an intent on the route `dynamic_qr` was ended by its provider's side. */
export const PROVIDER_END_REASONS = [...PROVIDER_FAILURES, ...PROVIDER_DECLINES] as const;
export type ProviderEndReason = (typeof PROVIDER_END_REASONS)[number];
/** What becomes of an order elsewhere, so that a collection of it can settle nothing any more. */
export const ORDER_OBSTACLES = ["order_already_paid", "order_voided", "order_changed"] as const;
export type OrderObstacle = (typeof ORDER_OBSTACLES)[number];
/** Why a station may not ask a provider any more, although the route was offered when the collection was created. */
export const STANDING_END_REASONS = [
  "station_suspended",
  "station_closed",
  "station_frozen",
  "organization_frozen",
  "platform_frozen",
] as const;
/** Why a QR intent failed before its QR was there, or after it. */
export type FailureReason = ProviderEndReason | (typeof STANDING_END_REASONS)[number];
/** Why an intent was ended by another cause than its cashier or its deadline; `end_reason` on the wire. */
export const END_REASONS = [...PROVIDER_END_REASONS, ...ORDER_OBSTACLES, ...STANDING_END_REASONS] as const;
export type EndReason = (typeof END_REASONS)[number];

/** Why money may have moved without being settled. */
export const UNCLEAR_REASONS = [
  "outcome_unknown",
  "success_reported",
  "qr_presented",
  "provider_confirmed",
  "late_evidence",
  "late_money",
  "money_differs",
  "handoff_presented",
  "late_success",
] as const;
export type UnclearReason = (typeof UNCLEAR_REASONS)[number];

/** The provider's side of an intent on the route `dynamic_qr`. */
export interface ProviderPayment {
  /** The provider config that was asked; a later change of the station's config does not concern this intent. */
  readonly configId: number;
  /** What the guest scans; only while the intent is `presented`, so that nothing paid or ended is ever scanned. */
  readonly qrPayload: string;
  /** The provider's own reference of the payment; empty until it is known. */
  readonly providerReference: string;
  /** When the provider confirmed the money; null until then, and for good once set. */
  readonly confirmedAtMs: number | null;
  /**
   * The HTTP request that created the collection, until its QR is there; from an unpaid end on the one that ended it. Another
   * host that asks the provider, or reports the end, logs the same id.
   */
  readonly requestId?: string | undefined;
}

/** An order that the same reference has settled before, as the payment seam names it. */
export interface EarlierSale {
  readonly orderId: number;
  readonly orderDisplayNumber: number;
  readonly stationName: string;
  readonly amountMinor: AmountMinor;
  readonly currency: string;
  readonly settledAtMs: number;
}

/** Whose word a settlement is based on. */
export const ATTESTERS = ["cashier", "provider"] as const;
export type Attester = (typeof ATTESTERS)[number];

/** What was attested, kept from the moment the settlement is committed. By a provider: cashier 0 without a name. */
export interface Attestation {
  readonly by: Attester;
  /**
   * The command that attested, while its answer is outstanding. Its digest once the settlement has ended, so that a repetition
   * is known as one; empty where the log has lost it.
   */
  readonly commandId: string;
  readonly cashierId: number;
  readonly cashierName: string;
  /** The device's own reference on the smart POS route, what the cashier typed for a terminal, the provider's for a QR. */
  readonly reference: string;
  readonly atMs: number;
  readonly transactionId: number | null;
  /** The cashier knows that the reference has settled another order, and attests all the same; else it is left out. */
  readonly confirmsReferenceAlreadyUsed?: true;
  /** The HTTP request that attested, until the settlement has ended: another host that completes it logs the same id. */
  readonly requestId?: string | undefined;
}

/** An attestation as the payment seam keeps it with its transaction. */
export type RecordedAttestation = Pick<Attestation, "cashierId" | "cashierName" | "reference" | "atMs">;

/** Everything about an intent but its state. Every money field is a snapshot of order truth, authored at creation (I1). */
export interface IntentRecord {
  readonly intentId: number;
  readonly displayNumber: number;
  readonly route: Route;
  readonly orderId: number;
  readonly orderDisplayNumber: number;
  /** The order's when its money was snapshotted: an older description of the order does not concern this intent. */
  readonly orderRevision: number;
  readonly amountMinor: AmountMinor;
  readonly currency: string;
  readonly stationName: string;
  /** The companion that this intent is handed to; null for routes without one. */
  readonly deviceId: number | null;
  readonly handoffTarget: string;
  readonly createdBy: number;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly presentedAtMs: number | null;
  /** The newest reports, oldest first; `reportCount` counts all that were ever made. */
  readonly reports: readonly Report[];
  readonly reportCount: number;
  /** The newest of those that are not among `reports` any more, oldest first. */
  readonly formerReports: readonly FormerReport[];
  readonly attestation: Attestation | null;
  /** Null for all routes but `dynamic_qr`. */
  readonly provider: ProviderPayment | null;
  /**
   * Why money may have moved, from the first evidence on; the evidence may leave the bounded state, this does not.
   * Empty while nothing has. Only the provider's word that nothing moved takes it away again, and nothing changes it once the
   * intent has ended.
   */
  readonly moneyMayHaveMoved: UnclearReason | "";
  /**
   * Why money may have moved since it ended unpaid: the reason at its end, then what was learned later. It stays when another
   * collection pays the order, because the guest may have paid twice. Empty before the end and without evidence.
   */
  readonly reasonSinceEnd: UnclearReason | "";
  readonly endedAtMs: number | null;
  /** Why another cause than its cashier or its deadline ended it; else empty. */
  readonly endReason: EndReason | "";
  /** Digest of the command with which the cashier cancelled it, so that a repetition is known as one; else empty. */
  readonly cancelKey: string;
}

/** An intent as it is in a station's committed state. */
export interface PaymentIntent extends IntentRecord {
  readonly status: IntentState;
}

/** States from which nothing moves the intent any more. */
export function isEnded(status: IntentState): boolean {
  return status === "succeeded" || status === "cancelled" || status === "expired";
}

/** The status as the wire shows it: a settlement under way still is `processing`. */
export function wireStatus(status: IntentState): IntentStatus {
  return status === "settling" ? "processing" : status;
}

/** Whether a provider has confirmed this intent's payment. */
export function isConfirmed({ provider }: Pick<IntentRecord, "provider">): boolean {
  return provider !== null && provider.confirmedAtMs !== null;
}
