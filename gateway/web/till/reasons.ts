/** Texts for cashiers: why a route is withdrawn, why a station is blocked, and why a payment is unclear. */
import { language } from "../shared/language.ts";
import type { ReplyOf } from "../shared/operations.ts";

type Live = ReplyOf<"GET /api/cashier/v1/stations/{station_id}/live/">;
export type LiveState = Extract<Live, { readonly type: "state" }>;
export type Intent = NonNullable<LiveState["active_intent"]>;
type OrderStatus = NonNullable<LiveState["order"]>["status"];
type Withdrawal = NonNullable<LiveState["routes"][number]["reason"]>;
type Unclear = LiveState["unclear_collections"][number]["reason"];
/** Without `money_may_have_moved`, for which the page shows `confirmation_needed`. */
type Obstacle = Exclude<Intent["settle_obstacle"], "" | "money_may_have_moved">;

const withdrawals: Readonly<Record<"en" | "de", Readonly<Record<Withdrawal, string>>>> = {
  en: {
    no_companion: "This station has no companion.",
    device_offline: "The companion is offline. Check its power and network.",
    device_not_enrolled: "The companion is not set up yet. Ask the owner for its code.",
    capability_missing: "The companion cannot take payments.",
    device_suspended: "The owner has suspended the companion.",
    device_frozen: "The companion is frozen.",
    provider_not_configured: "No payment provider is set up for this station.",
    provider_frozen: "The payment provider is frozen.",
    station_suspended: "The owner has suspended this station.",
    station_closed: "This station is closed.",
    station_frozen: "This station is frozen.",
    organization_frozen: "All stations are frozen.",
    platform_frozen: "The platform is frozen.",
  },
  de: {
    no_companion: "Diese Station hat kein Gerät.",
    device_offline: "Das Gerät ist offline. Prüfen Sie Strom und Netz.",
    device_not_enrolled: "Das Gerät ist noch nicht eingerichtet. Bitten Sie den Inhaber um den Code.",
    capability_missing: "Das Gerät kann keine Zahlungen annehmen.",
    device_suspended: "Der Inhaber hat das Gerät gesperrt.",
    device_frozen: "Das Gerät ist eingefroren.",
    provider_not_configured: "Für diese Station ist kein Zahlungsanbieter eingerichtet.",
    provider_frozen: "Der Zahlungsanbieter ist eingefroren.",
    station_suspended: "Der Inhaber hat diese Station gesperrt.",
    station_closed: "Diese Station ist geschlossen.",
    station_frozen: "Diese Station ist eingefroren.",
    organization_frozen: "Alle Stationen sind eingefroren.",
    platform_frozen: "Die Plattform ist eingefroren.",
  },
};

/** For a reason of a newer service, the text is the code. */
export const withdrawalText = (reason: string): string =>
  (withdrawals[language.value] as Partial<Record<string, string>>)[reason] ?? reason;

const unclear: Readonly<Record<"en" | "de", Readonly<Record<Unclear, string>>>> = {
  en: {
    outcome_unknown: "It is not known whether the guest has paid.",
    success_reported: "The device reported an approval.",
    qr_presented: "The QR code was shown to the guest.",
    provider_confirmed: "The provider confirmed the payment, but it could not be settled.",
    late_evidence: "Afterwards the device reported that it does not know the outcome.",
    late_success: "Afterwards the device reported an approval.",
    late_money: "Afterwards the provider reported the payment.",
    money_differs: "The provider reports a payment that differs.",
    handoff_presented: "The device had it and reported nothing.",
  },
  de: {
    outcome_unknown: "Es ist nicht bekannt, ob der Gast bezahlt hat.",
    success_reported: "Das Gerät hat eine Genehmigung gemeldet.",
    qr_presented: "Der QR-Code wurde dem Gast gezeigt.",
    provider_confirmed: "Der Anbieter hat die Zahlung bestätigt, sie konnte aber nicht gebucht werden.",
    late_evidence: "Nachträglich hat das Gerät gemeldet, dass es das Ergebnis nicht kennt.",
    late_success: "Nachträglich hat das Gerät eine Genehmigung gemeldet.",
    late_money: "Nachträglich hat der Anbieter die Zahlung gemeldet.",
    money_differs: "Der Anbieter meldet eine abweichende Zahlung.",
    handoff_presented: "Das Gerät hatte den Auftrag und hat nichts gemeldet.",
  },
};

export const unclearText = (reason: string): string =>
  (unclear[language.value] as Partial<Record<string, string>>)[reason] ?? reason;

const obstacles: Readonly<Record<"en" | "de", Readonly<Record<Obstacle, string>>>> = {
  en: {
    order_already_paid: "The order is already paid.",
    order_voided: "The order was voided.",
    order_changed: "The order has another amount now.",
  },
  de: {
    order_already_paid: "Die Bestellung ist schon bezahlt.",
    order_voided: "Die Bestellung wurde storniert.",
    order_changed: "Die Bestellung hat jetzt einen anderen Betrag.",
  },
};

export const obstacleText = (obstacle: string): string =>
  (obstacles[language.value] as Partial<Record<string, string>>)[obstacle] ?? obstacle;

/** Whether an error, or a reason of a collection, means that its order is paid or voided. */
export const isOrderClosed = (code: string): boolean => code === "order_already_paid" || code === "order_voided";

/** Why this order cannot be collected any more; null for an open order, and without an order. */
export function closedText(order: { readonly status: OrderStatus } | null): string | null {
  if (order === null || order.status === "open") return null;
  return obstacleText(order.status === "paid" ? "order_already_paid" : "order_voided");
}
