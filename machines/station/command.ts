/** The commands of a station. Ids, time and order data are inputs: the machine reads nothing from outside. */

import type { EarlierSale, FailureReason, RecordedAttestation, ReportedOutcome, Route } from "../payment-intent.ts";
import type { BlockedReason } from "../standing.ts";
import type { SettlementRefusal } from "./reply.ts";
import type { DeviceDescription, LostCollections, OrderSnapshot, ProviderChoice, StationDescription } from "./state.ts";

/** The requested lifetime of a lease, and the session to which the lease is bound. */
export interface LeaseTerms {
  readonly lifetimeMs?: number | undefined;
  /** The lease ends with the session. Without one, it ends at its deadline. */
  readonly session?: { readonly sessionId: number; readonly expiresAtMs: number } | undefined;
}

/** The cashier knows that an earlier collection of the order may have moved money, and collects or attests anyway. */
export interface MoneyConfirmation {
  readonly confirmsMoneyMayHaveMoved?: boolean | undefined;
  /** The `reasonNumber` that the cashier was shown. A reason with a higher number is not confirmed. */
  readonly confirmedReasonNumber?: number | undefined;
}

export type StationCommand =
  // From the registry, by way of the outbox.
  | {
      readonly type: "station_put";
      readonly stationId: number;
      readonly station: StationDescription;
      /** What the station's log has lost, from the audit copy. In the same commit, so that no collection begins before it. */
      readonly lost?: LostCollections | undefined;
    }
  | { readonly type: "device_put"; readonly device: DeviceDescription }
  /** Sessions that hold this station's lease, or are about to acquire it, have ended. The actor is the person who ended them. */
  | { readonly type: "sessions_ended"; readonly sessionIds: readonly number[] }
  // From the settlement service, by way of the outbox.
  | { readonly type: "order_put"; readonly order: OrderSnapshot }
  // From the liveness feed.
  | { readonly type: "device_seen"; readonly deviceId: number; readonly seenAtMs: number }
  | { readonly type: "device_silent"; readonly deviceId: number; readonly lastSeenAtMs: number }
  // From the cashier, who is the actor of the command.
  | ({
      readonly type: "lease_acquire";
      /** Confirms a take-over: the id of the cashier who holds the lease. */
      readonly takeOverFrom?: number | undefined;
      /** The digest of the client's request. A command with another digest is no repetition. */
      readonly requestDigest?: string | undefined;
    } & LeaseTerms)
  | ({ readonly type: "lease_renew" } & LeaseTerms)
  | { readonly type: "lease_release" }
  // From the owner.
  | { readonly type: "lease_break" }
  // From the cashier.
  | ({
      readonly type: "intent_create";
      readonly route: Route;
      /** Allocated by the settlement service together with the order snapshot. */
      readonly intentId: number;
      readonly order: OrderSnapshot;
      /** The companion that the cashier prefers. Without it, the station takes the first live companion. */
      readonly deviceId?: number | undefined;
      readonly lifetimeMs?: number | undefined;
    } & MoneyConfirmation)
  | ({
      readonly type: "intent_attest";
      readonly intentId: number;
      readonly reference?: string | undefined;
      /** The cashier knows that the reference has settled another order, and attests anyway. */
      readonly confirmsReferenceAlreadyUsed?: boolean | undefined;
      /** The number of reports that the cashier knew. A later report may have another reference. */
      readonly confirmedReportCount?: number | undefined;
    } & MoneyConfirmation)
  | { readonly type: "intent_cancel"; readonly intentId: number }
  // From a device, which is the actor of the command.
  | { readonly type: "intent_present"; readonly intentId: number }
  | {
      readonly type: "intent_report";
      readonly intentId: number;
      readonly outcome: ReportedOutcome;
      readonly providerReference: string;
      readonly providerCode: string;
      /** Why the device is blocked, as far as the gateway knows. The station keeps the evidence and refuses with this reason. */
      readonly blockedReason?: BlockedReason | undefined;
    }
  // From the providers service. The actor of a confirmation is the provider config.
  | { readonly type: "provider_put"; readonly provider: ProviderChoice }
  | { readonly type: "provider_confirm"; readonly intentId: number; readonly providerReference: string }
  | { readonly type: "provider_failed"; readonly intentId: number; readonly reason: FailureReason }
  /** The provider reports that no money moved for this intent and none will. */
  | { readonly type: "provider_cleared"; readonly intentId: number }
  /**
   * The provider asserts a payment that differs from this intent's. `issue` is the kind of its reconciliation issue. Each
   * payment has one issue, so another `issueId` means another payment.
   */
  | {
      readonly type: "provider_money_differs";
      readonly intentId: number;
      readonly issue: string;
      readonly issueId: number;
    }
  /** Is the order being collected? The answer is `collection_active` with the status, or accepted. Commits nothing. */
  | { readonly type: "order_inquire"; readonly orderId: number }
  // From the host: the providers service has acknowledged that this intent has ended unpaid.
  | { readonly type: "end_reported"; readonly intentId: number }
  // From the provider saga.
  | {
      readonly type: "qr_ready";
      readonly intentId: number;
      readonly qrPayload: string;
      readonly providerReference: string;
    }
  // From the settlement saga.
  | {
      readonly type: "settlement_succeeded";
      readonly intentId: number;
      readonly transactionId: number;
      /** The attestation from the payment seam's record, for a station whose log has lost it. */
      readonly attestation?: RecordedAttestation | undefined;
    }
  | {
      readonly type: "settlement_refused";
      readonly intentId: number;
      readonly code: SettlementRefusal;
      /** The command whose attestation the seam refused. The refusal of an earlier attestation must not undo a later one. */
      readonly attestationId?: string | undefined;
      /** For `reference_already_used`: the order that the same reference has settled. */
      readonly earlier?: EarlierSale | undefined;
    }
  // A deadline is due.
  | { readonly type: "tick" }
  /** The host does not know whether this command's commit is stored. It commits this in its place: then the other never is. */
  | { readonly type: "rule_out"; readonly commandId: string };

export type StationCommandType = StationCommand["type"];
