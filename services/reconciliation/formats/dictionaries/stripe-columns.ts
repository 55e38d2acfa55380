/**
 * The columns of Stripe's itemised reports. The person who exports a report chooses its columns and their order. This file
 * names only the columns from which lines are read; the other columns become details.
 */
import type { HeaderDictionary } from "../csv/dictionary.ts";

const COLUMNS = {
  balanceTransaction: ["balance_transaction_id"],
  category: ["reporting_category"],
  currency: ["currency"],
  gross: ["gross"],
  fee: ["fee"],
  net: ["net"],
  created: ["created"],
  createdUtc: ["created_utc"],
  availableOn: ["available_on"],
  availableOnUtc: ["available_on_utc"],
  payoutEffectiveAt: ["automatic_payout_effective_at"],
  payoutEffectiveAtUtc: ["automatic_payout_effective_at_utc"],
  payout: ["automatic_payout_id"],
  source: ["source_id"],
  charge: ["charge_id"],
  paymentIntent: ["payment_intent_id"],
  description: ["description"],
  /** The merchant chooses the keys of metadata. Under these keys the reader expects the merchant's reference. */
  orderReference: ["payment_metadata[order_id]"],
  merchantReference: ["payment_metadata[merchant_reference]"],
  intentReference: ["payment_metadata[intent_reference]"],
  plainReference: ["payment_metadata[reference]"],
} as const satisfies Record<string, readonly string[]>;
export type StripeField = keyof typeof COLUMNS;

const REQUIRED: readonly StripeField[] = ["balanceTransaction", "category", "currency", "gross", "fee", "net"];

/** The itemised report of payouts. Its time is when a payout leaves the balance. */
const PAYOUTS_COLUMNS: Partial<Record<StripeField, readonly string[]>> = {
  ...COLUMNS,
  created: ["effective_at"],
  createdUtc: ["effective_at_utc"],
  payout: ["payout_id"],
};

/** The balance history that the dashboard exports. */
const HISTORY_COLUMNS: Partial<Record<StripeField, readonly string[]>> = {
  balanceTransaction: ["id"],
  category: ["Type"],
  source: ["Source"],
  gross: ["Amount"],
  fee: ["Fee"],
  net: ["Net"],
  currency: ["Currency"],
  createdUtc: ["Created (UTC)"],
  created: ["Created"],
  availableOnUtc: ["Available On (UTC)"],
  availableOn: ["Available On"],
  description: ["Description"],
  payout: ["Transfer"],
};

export const STRIPE_PAYOUT_COLUMNS: HeaderDictionary<StripeField> = {
  report: "Stripe's payout reconciliation report",
  version: 3,
  entries: [{ name: "itemised", columns: COLUMNS, required: [...REQUIRED, "payout"] }],
};

export const STRIPE_ACTIVITY_COLUMNS: HeaderDictionary<StripeField> = {
  report: "Stripe's report of balance changes from activity",
  version: 3,
  entries: [
    { name: "itemised", columns: COLUMNS, required: REQUIRED },
    { name: "payouts", columns: PAYOUTS_COLUMNS, required: [...REQUIRED, "payout"] },
    { name: "balance history", columns: HISTORY_COLUMNS, required: [...REQUIRED, "source"] },
  ],
};

/** Columns with personal data. Reconciliation does not need them, so they do not become details. */
export const STRIPE_PERSONAL =
  /^(?:customer_(?:name|email|phone|description|(?:shipping_)?address_.*)|card_address_.*|shipping_address_.*|card name|card address .*|customer (?:name|email|description))$/i;
