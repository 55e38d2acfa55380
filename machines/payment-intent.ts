/**
 * The values and the record of a payment intent, which is one attempt to collect one order's amount over one route. Its
 * transitions are in `intent-machine.ts`.
 */
import type { AmountMinor } from "./currency.ts";

/** The routes: how the money is collected. */
export const ROUTES = ["smart_pos", "dynamic_qr", "attested_terminal", "cash"] as const;
export type Route = (typeof ROUTES)[number];

/** Whether a cashier attests without a device's report: the cashier holds the cash or the terminal's slip. */
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

/** All internal states. The wire shows `settling` as `processing` (design §2.4). */
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

/** One outcome that a device reported: evidence, never proof (contract, "Reported outcome"). */
export interface Report {
  readonly deviceId: number;
  readonly outcome: ReportedOutcome;
  readonly providerReference: string;
  readonly providerCode: string;
  readonly reportedAtMs: number;
  /** Digest of the command that reported it, so that the station recognises a repetition. */
  readonly key: string;
}

/** A report whose text has left the state. The rest is enough to answer a repetition. */
export interface FormerReport extends Pick<Report, "key" | "outcome" | "reportedAtMs"> {
  /** The digest of reference and code. A report that an earlier version dropped has none. */
  readonly textDigest?: string;
}

/** Why the providers service could not ask for a QR, or the provider did not return one. */
const PROVIDER_FAILURES = [
  "provider_refused",
  "provider_timed_out",
  "provider_unavailable",
  "provider_answer_invalid",
  "provider_frozen",
  "provider_not_configured",
] as const;
/** The provider's reports that a payment ended, that no money moved and that none will. */
export const PROVIDER_DECLINES = ["payment_declined", "buyer_cancelled", "provider_expired"] as const;
/** Why the provider's side ended an intent on the route `dynamic_qr`. */
export const PROVIDER_END_REASONS = [...PROVIDER_FAILURES, ...PROVIDER_DECLINES] as const;
export type ProviderEndReason = (typeof PROVIDER_END_REASONS)[number];
/** What happened to an order elsewhere, so that a collection of it cannot settle it any more. */
export const ORDER_OBSTACLES = ["order_already_paid", "order_voided", "order_changed"] as const;
export type OrderObstacle = (typeof ORDER_OBSTACLES)[number];
/** Why a station may not ask a provider any more, although it offered the route when the collection was created. */
export const STANDING_END_REASONS = [
  "station_suspended",
  "station_closed",
  "station_frozen",
  "organization_frozen",
  "platform_frozen",
] as const;
/** Why a QR intent failed, before or after its QR was ready. */
export type FailureReason = ProviderEndReason | (typeof STANDING_END_REASONS)[number];
/** Why an intent ended, unless its cashier or its deadline ended it; `end_reason` on the wire. */
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

/** The provider's part of an intent on the route `dynamic_qr`. */
export interface ProviderPayment {
  /** The provider config of this intent. A later change of the station's config does not affect the intent. */
  readonly configId: number;
  /** The QR that the guest scans. Set only while the intent is `presented`, so that no guest scans a paid or ended one. */
  readonly qrPayload: string;
  /** The provider's reference of the payment. Empty until the provider has returned it. */
  readonly providerReference: string;
  /** When the provider confirmed the payment; null until then. Once set, it never changes. */
  readonly confirmedAtMs: number | null;
  /**
   * The HTTP request that created the collection, until the QR is ready. After an unpaid end: the request that ended it. A
   * host that takes over logs the same id when it asks the provider or reports the end.
   */
  readonly requestId?: string | undefined;
}

/** An order that the same reference has already settled, as the payment seam reports it. */
export interface EarlierSale {
  readonly orderId: number;
  readonly orderDisplayNumber: number;
  readonly stationName: string;
  readonly amountMinor: AmountMinor;
  readonly currency: string;
  readonly settledAtMs: number;
}

/** Who attests a payment. */
export const ATTESTERS = ["cashier", "provider"] as const;
export type Attester = (typeof ATTESTERS)[number];

/** The attestation of a payment, kept once the settlement is committed. A provider's has cashier 0 without a name. */
export interface Attestation {
  readonly by: Attester;
  /**
   * The command that attested, while its answer is outstanding. After the settlement: the command's digest, so that the station
   * recognises a repetition. Empty when the log has lost the command.
   */
  readonly commandId: string;
  readonly cashierId: number;
  readonly cashierName: string;
  /** From the device on the smart POS route, from the cashier for a terminal, from the provider for a QR. */
  readonly reference: string;
  readonly atMs: number;
  readonly transactionId: number | null;
  /** The cashier knows that the reference has settled another order, and attests anyway. Otherwise left out. */
  readonly confirmsReferenceAlreadyUsed?: true;
  /** The HTTP request that attested, until the settlement has ended. Another host that completes it logs the same id. */
  readonly requestId?: string | undefined;
}

/** An attestation as the payment seam keeps it with its transaction. */
export type RecordedAttestation = Pick<Attestation, "cashierId" | "cashierName" | "reference" | "atMs">;

/** Everything about an intent but its state. The amount and currency are copied from the order at creation (I1). */
export interface IntentRecord {
  readonly intentId: number;
  readonly displayNumber: number;
  readonly route: Route;
  readonly orderId: number;
  readonly orderDisplayNumber: number;
  /** The order's revision at the creation. An older description of the order does not affect this intent. */
  readonly orderRevision: number;
  readonly amountMinor: AmountMinor;
  readonly currency: string;
  readonly stationName: string;
  /** The companion that must collect this intent; null for routes without a companion. */
  readonly deviceId: number | null;
  readonly handoffTarget: string;
  readonly createdBy: number;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly presentedAtMs: number | null;
  /** The newest reports, oldest first. `reportCount` counts all reports. */
  readonly reports: readonly Report[];
  readonly reportCount: number;
  /** The newest reports that have left `reports`, oldest first. */
  readonly formerReports: readonly FormerReport[];
  readonly attestation: Attestation | null;
  /** Null for all routes but `dynamic_qr`. */
  readonly provider: ProviderPayment | null;
  /**
   * Why money may have moved, from the first evidence on. It stays when the evidence leaves the bounded state. Empty while
   * there is no evidence. Only a provider's report that no money moved clears it, and nothing changes it after the end.
   */
  readonly moneyMayHaveMoved: UnclearReason | "";
  /**
   * For an intent that ended unpaid: why money may have moved, at its end or by later evidence. It stays when another
   * collection pays the order, because the guest may have paid twice. Empty before the end and without evidence.
   */
  readonly reasonSinceEnd: UnclearReason | "";
  readonly endedAtMs: number | null;
  /** Empty when the cashier or the deadline ended the intent, and before the end. */
  readonly endReason: EndReason | "";
  /** Digest of the cashier's cancel command, so that the station recognises a repetition. Otherwise empty. */
  readonly cancelKey: string;
}

/** An intent in a station's committed state. */
export interface PaymentIntent extends IntentRecord {
  readonly status: IntentState;
}

/** Whether no event changes the intent's state any more. */
export function isEnded(status: IntentState): boolean {
  return status === "succeeded" || status === "cancelled" || status === "expired";
}

/** The status as the wire shows it. */
export function wireStatus(status: IntentState): IntentStatus {
  return status === "settling" ? "processing" : status;
}

/** Whether a provider has confirmed this intent's payment. */
export function isConfirmed({ provider }: Pick<IntentRecord, "provider">): boolean {
  return provider !== null && provider.confirmedAtMs !== null;
}
