/** What a customer display shows (contract, "Display state"; design §4, "display"), without `server_time`. */
import { formatAmount } from "../currency.ts";
import { type PaymentIntent, type ProviderPayment, wireStatus } from "../payment-intent.ts";
import { PAID_SHOWN_MS, SET_BACK_MS } from "../settings.ts";
import { blockedReason, type KillSwitches } from "../standing.ts";
import type { StationDevice, StationState } from "../station/state.ts";
import { unclearToConfirm } from "../station/unclear-collections.ts";

export interface DisplayView {
  readonly state: "idle" | "total" | "qr" | "paid";
  readonly order_display_number: number;
  readonly amount: string;
  readonly currency: string;
  readonly qr_payload: string;
  readonly intent_status: string;
}

/** A view and the moment at which it changes without a commit. Null means that only a commit changes it. */
interface TimedDisplayView {
  readonly view: DisplayView;
  readonly validUntilMs: number | null;
}

/**
 * A collection under way comes first, then a recent payment, then the open order. A new order ends the `paid` view.
 * `rendersQr`: whether this display may show a QR payload (`rendersQrOn`). Otherwise the display shows the total.
 */
export function displayView(state: StationState, nowMs: number, rendersQr: boolean): TimedDisplayView {
  const { intent, order } = state;
  if (intent !== null && (intent.status === "settling" || intent.expiresAtMs > nowMs)) {
    const total = totalView(intent.orderDisplayNumber, intent.amountMinor, intent.currency, wireStatus(intent.status));
    const qrPayload = rendersQr ? shownQr(state, intent) : "";
    const view: DisplayView = qrPayload === "" ? total : { ...total, state: "qr", qr_payload: qrPayload };
    return { view, validUntilMs: intent.status === "settling" ? null : intent.expiresAtMs };
  }
  const paid = state.ended[0];
  if (
    paid?.status === "succeeded" &&
    paid.endedAtMs !== null &&
    (order === null || order.shownAtMs <= paid.endedAtMs)
  ) {
    const shownUntilMs = paid.endedAtMs + PAID_SHOWN_MS;
    // When the payment's end is ahead of the clock, the clock was set back after it: the payment may be old.
    if (nowMs >= paid.endedAtMs - SET_BACK_MS && nowMs < shownUntilMs) {
      const view = totalView(paid.orderDisplayNumber, paid.amountMinor, paid.currency, "succeeded");
      return { view: { ...view, state: "paid" }, validUntilMs: shownUntilMs };
    }
  }
  if (order !== null)
    return { view: totalView(order.orderDisplayNumber, order.amountMinor, order.currency, ""), validUntilMs: null };
  const idle: DisplayView = {
    state: "idle",
    order_display_number: 0,
    amount: "0.00",
    currency: state.currency,
    qr_payload: "",
    intent_status: "",
  };
  return { view: idle, validUntilMs: null };
}

/** Whether a device's display shows QR payloads now: the device has the capability, and `mayShowQr` permits it. */
export function rendersQrOn(state: StationState, device: StationDevice, switches: KillSwitches): boolean {
  const provider = state.intent?.provider ?? null;
  return (
    device.capabilities.includes("qr_dynamic_present") && provider !== null && mayShowQr(state, provider, switches)
  );
}

/**
 * Whether displays and cashiers may see the QR of a collection now. They may not while its provider is frozen, or while its
 * station may collect only cash. A payment that arrives during a freeze still counts.
 */
export function mayShowQr(
  station: Pick<StationState, "organizationId" | "stationId" | "status">,
  { configId }: Pick<ProviderPayment, "configId">,
  switches: KillSwitches,
): boolean {
  const { organizationId, stationId, status: stationStatus } = station;
  if (switches.providers.has(configId)) return false;
  return blockedReason({ organizationId, stationId, stationStatus }, switches) === "";
}

/**
 * Whether the guest may have paid in another way: the provider reports a payment that differs from the intent's, or an earlier
 * collection of the order has a reason that the cashier has not confirmed. Then the QR could cause a second payment, so the
 * displays hide it until the provider clears the reason or the cashier confirms it.
 */
export function mayBePaidOtherwise(
  station: Pick<StationState, "unclearCollections">,
  intent: Pick<PaymentIntent, "intentId" | "orderId" | "moneyMayHaveMoved">,
): boolean {
  return intent.moneyMayHaveMoved === "money_differs" || unclearToConfirm(station, intent) !== undefined;
}

function shownQr(station: StationState, intent: PaymentIntent): string {
  const isShown = intent.status === "presented" && !mayBePaidOtherwise(station, intent);
  return isShown ? (intent.provider?.qrPayload ?? "") : "";
}

function totalView(
  orderDisplayNumber: number,
  amountMinor: string,
  currency: string,
  intentStatus: string,
): DisplayView {
  return {
    state: "total",
    order_display_number: orderDisplayNumber,
    amount: formatAmount(amountMinor, currency),
    currency,
    qr_payload: "",
    intent_status: intentStatus,
  };
}
