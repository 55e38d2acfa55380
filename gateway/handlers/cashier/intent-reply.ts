/** The intent that a station's answer speaks of. */
import type { PaymentIntent } from "../../../machines/payment-intent.ts";
import type { AcceptedResponse } from "../../http/handler-context.ts";

/** An accepted command about an intent always answers with it; anything else is a fault of ours, not of the caller. */
export function spokenOf(response: AcceptedResponse): PaymentIntent {
  if (response.intent === null) throw new Error("A station answered a command about an intent without the intent.");
  return response.intent;
}
