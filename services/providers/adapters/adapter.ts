/**
 * What the service needs of a payment provider. An adapter speaks to one kind of provider and knows nothing of stations,
 * intents or PostgreSQL. It decides nothing: it asks, checks the shape of the answer, and returns it in these terms.
 */
import type { EndReason } from "../../../machines/payment-intent.ts";
import type { ProviderKind } from "../../bus/messages/provider-configs.ts";
import type { SignedCallback, Verdict } from "./callback-signature.ts";

/** What a config needs to call its provider. */
export interface ProviderAccess {
  readonly settings: Readonly<Record<string, unknown>>;
  /** Live secrets by name, the newest first. */
  readonly secrets: Readonly<Record<string, readonly string[]>>;
}

/** One payment, as the provider is asked for it and about it. */
export interface AskedPayment {
  /** Ours; a provider that is asked twice with the same one makes one payment. */
  readonly reference: string;
  readonly amountMinor: string;
  readonly currency: string;
  readonly orderDisplayNumber: number;
  readonly expiresAtMs: number;
  readonly callbackUrl: string;
  /** The provider's reference; empty while it is not known. */
  readonly providerReference: string;
}

export interface CreatedPayment {
  readonly qrPayload: string;
  /** Empty where the provider gives none before the money comes. */
  readonly providerReference: string;
}

/** A payment that a provider asserts. What it leaves out is null or empty, and then does not match. */
export interface AssertedPayment {
  readonly reference: string;
  readonly providerReference: string;
  readonly account: string;
  readonly amountMinor: string | null;
  readonly currency: string | null;
  /** The provider's text as it came, for the evidence. */
  readonly said: string;
}

/** Why the buyer's payment failed for certain. */
export type Decline = Extract<EndReason, "payment_declined" | "buyer_cancelled" | "provider_expired">;

export type LookUp =
  | { readonly status: "pending" }
  | { readonly status: "paid"; readonly money: AssertedPayment }
  | { readonly status: "ended"; readonly reason: Decline }
  /** The provider does not know. */
  | { readonly status: "unknown" };

export type Cancellation =
  /** No money moved and none will. */
  | { readonly status: "cancelled" }
  | { readonly status: "paid"; readonly money: AssertedPayment }
  /** The buyer is just paying; ask again. */
  | { readonly status: "in_progress" }
  /** The provider does not know, or cannot cancel. */
  | { readonly status: "unknown" };

export interface CallbackEvent {
  /** The provider's id of the event; null where it has none. */
  readonly eventId: string | null;
  /** The provider's name of it, for the record. */
  readonly type: string;
  readonly effect:
    | { readonly kind: "paid"; readonly money: AssertedPayment }
    | { readonly kind: "ended"; readonly reference: string; readonly reason: Decline }
    /** Nothing that concerns a collection, or a kind that did not exist when this was written. */
    | { readonly kind: "none" };
}

/** What an owner gave, as it is stored. `newSecrets` were made now and are shown this once. */
export interface PreparedConfig {
  readonly settings: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, string>>;
  readonly newSecrets: Readonly<Record<string, string>>;
}

export interface ProviderAdapter {
  readonly secretNames: readonly string[];
  /** False: the provider has no API; only a callback or the deadline ends a payment. */
  readonly answersQuestions: boolean;
  /** Checks settings. Throws `RefusedError` `invalid_request` naming the fields. */
  checkSettings(settings: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  /** Checks what an owner gave and makes what is missing; may ask the provider. */
  prepare(
    given: {
      readonly name: string;
      readonly settings: Readonly<Record<string, unknown>>;
      readonly secrets: Readonly<Record<string, string>>;
    },
    signal: AbortSignal,
  ): Promise<PreparedConfig>;
  /** A new secret of that name, valid at the provider when this resolves; `given` comes from the owner. */
  renewSecret(
    access: ProviderAccess,
    renewal: { readonly name: string; readonly given: string | undefined },
    signal: AbortSignal,
  ): Promise<string>;
  /** The account that the money must reach. */
  accountOf(settings: Readonly<Record<string, unknown>>): string;
  /** All three throw `ProviderError`. */
  createPayment(access: ProviderAccess, payment: AskedPayment, signal: AbortSignal): Promise<CreatedPayment>;
  lookUp(access: ProviderAccess, payment: AskedPayment, signal: AbortSignal): Promise<LookUp>;
  cancel(access: ProviderAccess, payment: AskedPayment, signal: AbortSignal): Promise<Cancellation>;
  verify(callback: SignedCallback, secrets: readonly string[], nowMs: number): Verdict;
  /** Takes any signed bytes: what cannot be read becomes an asserted payment without facts. */
  decode(body: Uint8Array): CallbackEvent;
}

/** The name of the secret with which every adapter's callbacks are signed. */
export const CALLBACK_SECRET = "callback_secret";

export type Adapters = Readonly<Record<ProviderKind, ProviderAdapter>>;

/** Why a provider did not do what it was asked. */
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

  /** A refusal says that there is no payment; after any other failure there may be one. */
  get mayHaveTakenEffect(): boolean {
    return this.failure !== "provider_refused";
  }
}
