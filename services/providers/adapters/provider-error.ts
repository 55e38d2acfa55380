/** Why a provider did not do what it was asked. */
import type { EndReason } from "../../../machines/payment-intent.ts";

export type ProviderFailure = Extract<
  EndReason,
  "provider_refused" | "provider_timed_out" | "provider_unavailable" | "provider_answer_invalid"
>;

/** `failure` is what the cashier sees; the message is for the log and holds no secret. */
export class ProviderError extends Error {
  readonly failure: ProviderFailure;

  constructor(failure: ProviderFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ProviderError";
    this.failure = failure;
  }

  /** A refusal is the provider's own word that there is no payment; after anything else there may be one. */
  get mayHaveTakenEffect(): boolean {
    return this.failure !== "provider_refused";
  }
}
