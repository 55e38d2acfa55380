/** The events of the audit log and of the payment timeline. They have only facts: the readers make the sentences. */

import type { AmountMinor } from "../currency.ts";
import type {
  EarlierSale,
  FailureReason,
  IntentStatus,
  OrderObstacle,
  ReportedOutcome,
  Route,
  UnclearReason,
} from "../payment-intent.ts";
import type { BlockedReason, DeviceStatus, StationStatus } from "../standing.ts";
import type { SettlementRefusal } from "./reply.ts";

export type StationEvent =
  | { readonly type: "station_changed"; readonly status: StationStatus; readonly revision: number }
  | {
      readonly type: "device_changed";
      readonly deviceId: number;
      readonly status: DeviceStatus;
      readonly revision: number;
    }
  | {
      readonly type: "order_shown";
      readonly orderId: number;
      readonly amountMinor: AmountMinor;
      readonly currency: string;
    }
  | { readonly type: "order_cleared"; readonly orderId: number; readonly status: "paid" | "voided" }
  | { readonly type: "device_online"; readonly deviceId: number; readonly seenAtMs: number }
  | { readonly type: "device_offline"; readonly deviceId: number; readonly lastSeenAtMs: number }
  | { readonly type: "lease_acquired"; readonly cashierId: number; readonly expiresAtMs: number }
  | { readonly type: "lease_renewed"; readonly cashierId: number; readonly expiresAtMs: number }
  | { readonly type: "lease_released"; readonly cashierId: number }
  | { readonly type: "lease_lapsed"; readonly cashierId: number }
  | {
      /** Another cashier took over the lease, after a confirmation. A collection under way continues. */
      readonly type: "lease_taken_over";
      readonly cashierId: number;
      readonly cashierName: string;
      readonly fromCashierId: number;
      readonly fromCashierName: string;
      readonly expiresAtMs: number;
    }
  /** The owner freed the station. */
  | { readonly type: "lease_broken"; readonly cashierId: number; readonly cashierName: string }
  /** The lease ended with its session. */
  | { readonly type: "lease_ended"; readonly cashierId: number; readonly cashierName: string }
  | { readonly type: "sessions_ended"; readonly sessionIds: readonly number[] }
  | {
      readonly type: "intent_created";
      readonly intentId: number;
      readonly route: Route;
      readonly orderId: number;
      readonly amountMinor: AmountMinor;
      readonly currency: string;
      readonly deviceId: number | null;
      readonly expiresAtMs: number;
    }
  | { readonly type: "intent_presented"; readonly intentId: number; readonly deviceId: number }
  | {
      readonly type: "outcome_reported";
      readonly intentId: number;
      readonly deviceId: number;
      readonly outcome: ReportedOutcome;
      readonly providerReference: string;
      readonly providerCode: string;
    }
  | {
      /**
       * A report after the end or from a blocked device. The station refused it, but kept it because money may have moved
       * (design §4, "late evidence").
       */
      readonly type: "late_evidence_kept";
      readonly intentId: number;
      readonly deviceId: number;
      readonly outcome: ReportedOutcome;
      readonly providerReference: string;
      readonly providerCode: string;
      /** The intent's status when the report arrived. */
      readonly status: IntentStatus;
      /** Why the device was blocked. Empty when it was not: the intent had ended. */
      readonly blockedReason: BlockedReason | "";
    }
  | {
      readonly type: "settlement_started";
      readonly intentId: number;
      readonly cashierId: number;
      readonly reference: string;
      /** The cashier confirmed that the reference has settled another order. Otherwise left out. */
      readonly confirmsReferenceAlreadyUsed?: true;
    }
  | {
      readonly type: "settlement_refused";
      readonly intentId: number;
      readonly code: SettlementRefusal;
      /** For `reference_already_used`: the order that the same reference has settled. */
      readonly earlier?: EarlierSale;
    }
  | {
      readonly type: "intent_succeeded";
      readonly intentId: number;
      readonly orderId: number;
      readonly transactionId: number;
    }
  | {
      /** The seam settled an intent that was cancelled or had expired: the order is paid and a person must check. */
      readonly type: "settlement_conflict";
      readonly intentId: number;
      readonly transactionId: number;
      readonly status: IntentStatus;
    }
  | { readonly type: "provider_changed"; readonly configId: number | null; readonly revision: number }
  | { readonly type: "qr_presented"; readonly intentId: number; readonly providerReference: string }
  | { readonly type: "provider_failed"; readonly intentId: number; readonly reason: FailureReason }
  | { readonly type: "provider_confirmed"; readonly intentId: number; readonly providerReference: string }
  | {
      /** A provider's payment that settles nothing: the intent had ended, or another payment had settled it. */
      readonly type: "late_money_kept";
      readonly intentId: number;
      readonly providerReference: string;
      readonly status: IntentStatus;
    }
  | {
      /** A provider's payment that differs from the intent's. It settles nothing, and has a reconciliation issue. */
      readonly type: "money_differs";
      readonly intentId: number;
      readonly issue: string;
      readonly status: IntentStatus;
    }
  | {
      /**
       * The order was paid in another way, voided or changed while this collection waited. Has `moneyMayHaveMoved` when the
       * collection had been presented.
       */
      readonly type: "intent_overtaken";
      readonly intentId: number;
      readonly orderId: number;
      readonly reason: OrderObstacle;
      readonly moneyMayHaveMoved: boolean;
    }
  /** The providers service knows that the intent has ended unpaid, and notifies the provider. */
  | { readonly type: "end_reported"; readonly intentId: number }
  | { readonly type: "unclear_resolved"; readonly intentId: number; readonly orderId: number }
  | {
      /** The cashier collects although an earlier collection of the same order may have moved money. */
      readonly type: "second_collection_confirmed";
      readonly intentId: number;
      readonly orderId: number;
      /** Null when the station has forgotten the reason and knows only the order. */
      readonly earlierIntentId: number | null;
    }
  | {
      /** The log had lost the reasons of these collections, or the display numbers in use. The audit copy restored them. */
      readonly type: "collections_restored";
      readonly reasons: readonly {
        readonly orderId: number;
        readonly intentId: number;
        readonly reason: UnclearReason;
      }[];
      /** Up to this id, every order counts as unclear. */
      readonly unclearThrough: number;
      readonly nextIntentNumber: number;
    }
  /** The outcome of a command was unknown. This event makes certain that the command has no effect. */
  | { readonly type: "command_ruled_out"; readonly commandId: string }
  | { readonly type: "intent_cancelled"; readonly intentId: number; readonly cashierId: number }
  | { readonly type: "intent_expired"; readonly intentId: number };
