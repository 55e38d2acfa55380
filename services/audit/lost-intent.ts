/**
 * An intent that the log has lost: no station will ever move it again, so what it was in the middle of is not what it is.
 * Pure.
 */
import { isEnded, type PaymentIntent } from "../../machines/payment-intent.ts";

/** When the log lost the intent, and what the payment seam recorded of it, which is the truth about its money. */
export interface Fate {
  readonly lostAtMs: number;
  readonly sale: {
    readonly transactionId: number;
    readonly attestedBy: number;
    readonly reference: string;
    readonly settledAtMs: number;
  } | null;
}

/** As it was, while it is not lost; else succeeded if it is paid, and at the latest expired when it was lost. */
export function asItEnded(intent: PaymentIntent, fate: Fate | null): PaymentIntent {
  if (fate === null || intent.status === "succeeded") return intent;
  if (fate.sale === null) {
    return isEnded(intent.status)
      ? intent
      : { ...intent, status: "expired", attestation: null, endedAtMs: fate.lostAtMs };
  }
  const { transactionId, attestedBy, reference, settledAtMs } = fate.sale;
  // A transaction that no cashier attested was confirmed by a provider.
  const by = attestedBy === 0 ? "provider" : "cashier";
  const attested = intent.attestation ?? { by, cashierId: attestedBy, cashierName: "", atMs: settledAtMs };
  return {
    ...intent,
    status: "succeeded",
    attestation: { ...attested, commandId: "", reference, transactionId },
    endedAtMs: settledAtMs,
  };
}
