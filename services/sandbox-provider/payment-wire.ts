/** A payment as the API and the callbacks show it. */
import { formatAmount } from "../../machines/currency.ts";
import type { PaymentRow } from "./sql/payments.ts";

export interface PaymentOnWire {
  readonly payment_id: string;
  readonly reference: string;
  readonly account: string;
  readonly amount: string;
  readonly currency: string;
  readonly status: PaymentRow["status"] | "in_progress" | "unknown";
}

/** What is said about it: once it is paid, what is asserted about the money, which some scenarios say wrongly. */
export function paymentOnWire(payment: PaymentRow): PaymentOnWire {
  const { payment_id, reference, account_id: account, currency, asserted } = payment;
  const amount = formatAmount(payment.amount_minor, currency);
  return { payment_id, reference, account, amount, currency, ...asserted, status: statusOf(payment) };
}

function statusOf(payment: PaymentRow): PaymentOnWire["status"] {
  if (payment.scenario === "unknown") return "unknown";
  return payment.status;
}
