/** What a station can be asked. Ids, clock and order truth are inputs: the machine takes nothing from outside. */

import type { EarlierSale, FailureReason, RecordedAttestation, ReportedOutcome, Route } from "../payment-intent.ts";
import type { BlockedReason } from "../standing.ts";
import type { SettlementRefusal } from "./reply.ts";
import type { DeviceDescription, LostCollections, OrderSnapshot, ProviderChoice, StationDescription } from "./state.ts";

/** How long a lease is asked for, and the session that asks: the lease ends with it. */
export interface LeaseTerms {
  readonly lifetimeMs?: number | undefined;
  /** Left out, the lease is bound to no session and ends by its deadline. */
  readonly session?: { readonly sessionId: number; readonly expiresAtMs: number } | undefined;
}

export type StationCommand =
  // From the registry, by way of the outbox.
  | {
      readonly type: "station_put";
      readonly stationId: number;
      readonly station: StationDescription;
      /** What the station's log has lost, from the audit copy: in the same commit, so that no collection comes before it. */
      readonly lost?: LostCollections | undefined;
    }
  | { readonly type: "device_put"; readonly device: DeviceDescription }
  /** The sessions that drive this station, or are about to, have ended; the actor is who ended them. */
  | { readonly type: "sessions_ended"; readonly sessionIds: readonly number[] }
  // From the settlement service, by way of the outbox.
  | { readonly type: "order_put"; readonly order: OrderSnapshot }
  // From the liveness feed.
  | { readonly type: "device_seen"; readonly deviceId: number; readonly seenAtMs: number }
  | { readonly type: "device_silent"; readonly deviceId: number; readonly lastSeenAtMs: number }
  // From the cashier; the actor of the command is who asks.
  | ({
      readonly type: "lease_acquire";
      /** Confirms a take-over: the id of the cashier who holds the lease. */
      readonly takeOverFrom?: number | undefined;
      /** The digest of the client's request, which its terms are made from: another one is no repetition. */
      readonly requestDigest?: string | undefined;
    } & LeaseTerms)
  | ({ readonly type: "lease_renew" } & LeaseTerms)
  | { readonly type: "lease_release" }
  // From the owner.
  | { readonly type: "lease_break" }
  // From the cashier.
  | {
      readonly type: "intent_create";
      readonly route: Route;
      /** Allocated by the settlement service together with the order snapshot. */
      readonly intentId: number;
      readonly order: OrderSnapshot;
      /** A companion the cashier prefers; without one the first live one is taken. */
      readonly deviceId?: number | undefined;
      readonly lifetimeMs?: number | undefined;
      /** The cashier knows that an earlier collection of this order may have moved money, and collects again. */
      readonly confirmsMoneyMayHaveMoved?: boolean | undefined;
    }
  | {
      readonly type: "intent_attest";
      readonly intentId: number;
      readonly reference?: string | undefined;
      /** The cashier knows that the reference has settled another order, and attests all the same. */
      readonly confirmsReferenceAlreadyUsed?: boolean | undefined;
      /** The cashier knows what was learned about earlier collections of this order, and attests all the same. */
      readonly confirmsMoneyMayHaveMoved?: boolean | undefined;
    }
  | { readonly type: "intent_cancel"; readonly intentId: number }
  // From a device; the actor of the command is the device.
  | { readonly type: "intent_present"; readonly intentId: number }
  | {
      readonly type: "intent_report";
      readonly intentId: number;
      readonly outcome: ReportedOutcome;
      readonly providerReference: string;
      readonly providerCode: string;
      /** Why the gateway knows the device to be blocked: the evidence is kept, and refused with this. */
      readonly blockedReason?: BlockedReason | undefined;
    }
  // From the providers service; the actor of a confirmation is the provider config.
  | { readonly type: "provider_put"; readonly provider: ProviderChoice }
  | { readonly type: "provider_confirm"; readonly intentId: number; readonly providerReference: string }
  | { readonly type: "provider_failed"; readonly intentId: number; readonly reason: FailureReason }
  /** The provider reports for certain that no money moved for this intent and none will. */
  | { readonly type: "provider_cleared"; readonly intentId: number }
  /**
   * The provider asserts money that differs from what was registered for this intent; `issue` is the kind that names it.
   * There is one issue for each payment, so another id means that another payment is asserted.
   */
  | {
      readonly type: "provider_money_differs";
      readonly intentId: number;
      readonly issue: string;
      readonly issueId: number;
    }
  /** Whether the order is being collected: `collection_active` with the status, or accepted. Nothing is committed by it. */
  | { readonly type: "order_inquire"; readonly orderId: number }
  // From the host: the providers service has taken note that this intent has ended unpaid.
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
      /** What was attested, from the payment seam's record, for a station whose log has lost the attestation. */
      readonly attestation?: RecordedAttestation | undefined;
    }
  | {
      readonly type: "settlement_refused";
      readonly intentId: number;
      readonly code: SettlementRefusal;
      /** The command whose attestation was refused: a refusal of an earlier attestation must not undo a later one. */
      readonly attestationId?: string | undefined;
      /** For `reference_already_used`: the order that the same reference has settled. */
      readonly earlier?: EarlierSale | undefined;
    }
  // A deadline is due.
  | { readonly type: "tick" }
  /** The host does not know whether this command's commit is stored: a commit in its place makes sure that it never is. */
  | { readonly type: "rule_out"; readonly commandId: string };

export type StationCommandType = StationCommand["type"];
