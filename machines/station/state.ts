/**
 * A station's whole committed state, as one message of a station log contains it (design §2.1). It is plain JSON, bounded by
 * `STATE_LIMITS`, and has no derived values: the views compute these.
 */
import type { AmountMinor } from "../currency.ts";
import type { LeaseHolder, LostLease } from "../lease.ts";
import type { LivenessRecord, LivenessState } from "../liveness.ts";
import type { OrderObstacle, PaymentIntent, UnclearReason } from "../payment-intent.ts";
import type { DeviceStatus, StationStatus } from "../standing.ts";
import type { StationReply } from "./reply.ts";

export const DEVICE_KINDS = ["smart_pos_companion", "customer_display"] as const;
export type DeviceKind = (typeof DEVICE_KINDS)[number];

export const CAPABILITIES = ["handoff_present", "outcome_report", "display_total", "qr_dynamic_present"] as const;
export type Capability = (typeof CAPABILITIES)[number];

/** A device as the registry last described it. `revision` grows with each change: the station ignores an older description. */
export interface DeviceDescription {
  readonly deviceId: number;
  readonly name: string;
  readonly kind: DeviceKind;
  readonly capabilities: readonly Capability[];
  readonly status: DeviceStatus;
  /** An opaque launch reference from the owner. The code never interprets it. */
  readonly handoffTarget: string;
  readonly revision: number;
}

export interface StationDevice extends DeviceDescription {
  readonly liveness: LivenessRecord & { readonly state: LivenessState };
}

/** A station as the registry last described it. */
export interface StationDescription {
  readonly organizationId: number;
  readonly filialId: number;
  readonly name: string;
  readonly currency: string;
  readonly status: StationStatus;
  readonly revision: number;
}

export const ORDER_STATUSES = ["open", "paid", "voided"] as const;
export type OrderStatus = (typeof ORDER_STATUSES)[number];

/** An order as the settlement service last reported it, with the service's `revision`. */
export interface OrderSnapshot {
  readonly orderId: number;
  readonly orderDisplayNumber: number;
  readonly amountMinor: AmountMinor;
  readonly currency: string;
  readonly status: OrderStatus;
  readonly revision: number;
}

/** The open order that a customer display shows as `total`. */
export interface ShownOrder extends OrderSnapshot {
  readonly shownAtMs: number;
}

/** The newest description of an order that a station has accepted. A paid or voided order never opens again. */
export interface KnownOrder {
  readonly orderId: number;
  readonly revision: number;
  readonly status: OrderStatus;
}

/** The provider config for dynamic QR at this station. `revision` grows with each change. */
export interface ProviderChoice {
  readonly configId: number | null;
  readonly revision: number;
}

/** An order for which money may have moved without being settled. */
export interface UnclearCollection {
  readonly orderId: number;
  /** The intent that ended unpaid, or that a payment reached after its end. */
  readonly intentId: number;
  readonly reason: UnclearReason;
  /** A new payment with the same reason gets a new number, so a confirmation of an earlier number does not cover it. */
  readonly reasonNumber: number;
  /** The newest intent of the order for which the cashier has confirmed this reason. Left out when there is none. */
  readonly confirmedFor?: number;
}

/** The strongest reason of a collection that ended unpaid and has left the state. It stays after the order is paid. */
export type OlderReason = Omit<UnclearCollection, "confirmedFor" | "reasonNumber">;

/** A collection that may have moved money, and why. */
export interface LostReason extends OlderReason {
  /** Of a reason of an open order. Left out by an earlier version. */
  readonly reasonNumber?: number | undefined;
  /** The collection was active at the last known commit, and its end is lost. If the station knows the end, the end counts. */
  readonly isAssumed?: true | undefined;
}

export interface LostCollections {
  /** The reasons of open orders: another collection of these needs the cashier's confirmation. */
  readonly unclear: readonly LostReason[];
  /** The reasons of all orders, one for each collection: a person may have to pay a guest back. */
  readonly reasons: readonly LostReason[];
  /** Up to this id, every order counts as unclear. */
  readonly unclearThrough: number;
  readonly nextIntentNumber: number;
  /** Left out before the first reason, and by an earlier version. */
  readonly lastReasonNumber?: number | undefined;
}

/**
 * The evidence about one intent that the station refused because the intent had ended or its device was blocked. The station
 * keeps the same content once, whatever the idempotency key. Each list has digests of the contents, oldest first.
 */
export interface LateEvidence {
  readonly intentId: number;
  /** Evidence of a payment: reported successes, a provider's late payments, and its issues. */
  readonly asserted: readonly string[];
  /** Reports of an unknown outcome. */
  readonly unknown: readonly string[];
  /** Reports that no money was taken. */
  readonly other: readonly string[];
}

/** A session that gets no lease any more, even for a request that is still under way. */
export interface EndedSession {
  readonly sessionId: number;
  readonly atMs: number;
}

export interface StoredReply {
  readonly commandId: string;
  /**
   * Of the request of a `lease_acquire` with an idempotency key, or of the reference of an attestation that the seam refused.
   * For other commands the intent shows the body, or there is no body.
   */
  readonly requestDigest?: string;
  readonly reply: StationReply;
}

export interface StationState extends StationDescription {
  readonly stationId: number;
  /** Sorted by device id, so that the same state always gives the same bytes. */
  readonly devices: readonly StationDevice[];
  /** Ids of devices that were revoked, newest last. */
  readonly revokedDevices: readonly number[];
  readonly order: ShownOrder | null;
  /** The other open orders, newest last. When `order` is paid or voided, the display shows the newest of these. */
  readonly waitingOrders: readonly ShownOrder[];
  /** The newest orders, and the paid and voided ones of the collections that the state has. Newest last. */
  readonly knownOrders: readonly KnownOrder[];
  readonly provider: ProviderChoice;
  /** One per intent and reason, newest last. */
  readonly unclearCollections: readonly UnclearCollection[];
  /** The highest order id that was pushed out of `unclearCollections`, or 0. Up to it, every order counts as unclear. */
  readonly unclearForgottenThrough: number;
  /** The highest `reasonNumber` so far. Left out before the first one. */
  readonly lastReasonNumber?: number;
  /** QR intents whose unpaid end the providers service has not acknowledged yet, oldest first. */
  readonly unreportedEnds: readonly number[];
  /** One entry per intent, newest last. */
  readonly lateEvidence: readonly LateEvidence[];
  readonly lease: LeaseHolder | null;
  /** The last lease that another person ended; null once a cashier has acquired the free station again. */
  readonly lostLease: LostLease | null;
  /** Sessions that ended a moment ago, newest last. */
  readonly endedSessions: readonly EndedSession[];
  /** The one collection that has not ended. */
  readonly intent: PaymentIntent | null;
  /** Ended collections, newest first. */
  readonly ended: readonly PaymentIntent[];
  /** One for each collection that has left `ended` and may have moved money, newest last. */
  readonly olderReasons: readonly OlderReason[];
  readonly nextIntentNumber: number;
  /** Newest last. */
  readonly replies: readonly StoredReply[];
}

export function findDevice(state: StationState, deviceId: number): StationDevice | undefined {
  return state.devices.find((device) => device.deviceId === deviceId);
}

/** The active or a recently ended intent with this id. */
export function findIntent(state: StationState, intentId: number): PaymentIntent | undefined {
  return state.intent?.intentId === intentId
    ? state.intent
    : state.ended.find((intent) => intent.intentId === intentId);
}

/** What a station knows about its orders. */
export type OrderKnowledge = Pick<StationState, "order" | "waitingOrders" | "knownOrders">;

/**
 * Why the payment seam would refuse to settle an intent, as far as the station knows: the order is paid, voided, or open with
 * another amount or currency than the intent's. Undefined when the station knows no obstacle.
 */
export function orderObstacle(
  { order, waitingOrders, knownOrders }: OrderKnowledge,
  intent: Pick<PaymentIntent, "orderId" | "orderRevision" | "amountMinor" | "currency">,
): OrderObstacle | undefined {
  const { orderId, orderRevision, amountMinor, currency } = intent;
  const status = knownOrders.find((known) => known.orderId === orderId)?.status;
  if (status === "paid") return "order_already_paid";
  if (status === "voided") return "order_voided";
  const open = order?.orderId === orderId ? order : waitingOrders.find((other) => other.orderId === orderId);
  if (open === undefined || open.revision <= orderRevision) return undefined;
  return open.amountMinor === amountMinor && open.currency === currency ? undefined : "order_changed";
}
