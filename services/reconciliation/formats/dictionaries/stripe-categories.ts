/**
 * Stripe's reporting categories, and the types of balance transactions that older exports have in their place. What is not
 * here is an adjustment: it moves the balance, and what it is for is not guessed.
 */
import type { LineKind } from "../format.ts";

export const STRIPE_CATEGORIES: Readonly<Record<string, LineKind>> = {
  charge: "payment",
  payment: "payment",
  refund: "refund",
  payment_refund: "refund",
  refund_failure: "refund_reversal",
  dispute: "chargeback",
  dispute_reversal: "chargeback_reversal",
  fee: "fee",
  stripe_fee: "fee",
  stripe_fx_fee: "fee",
  network_cost: "fee",
  tax: "fee",
  tax_fee: "fee",
  payout: "payout",
  payout_reversal: "payout_reversal",
  payout_failure: "payout_reversal",
  payout_cancel: "payout_reversal",
  currency_conversion: "conversion",
  // Not refunds that the merchant made: a charge that failed later, and the part of a charge that was not captured.
  charge_failure: "adjustment",
  payment_failure_refund: "adjustment",
  partial_capture_reversal: "adjustment",
};
