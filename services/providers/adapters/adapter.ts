/**
 * What the service needs from a payment provider. An adapter calls one kind of provider. It knows nothing about
 * stations, intents or PostgreSQL, and it decides nothing: it calls the provider, checks the shape of the answer, and
 * returns the answer in the types below.
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

/** One payment, as an adapter requests it from the provider and polls for it. */
export interface AskedPayment {
  /** The service's reference. A provider that receives the same reference twice makes one payment. */
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
  /** Empty where the provider gives no reference before the buyer has paid. */
  readonly providerReference: string;
}

/** A payment that a provider asserts. A fact that the provider leaves out is null or empty and matches nothing. */
export interface AssertedPayment {
  readonly reference: string;
  readonly providerReference: string;
  readonly account: string;
  readonly amountMinor: string | null;
  readonly currency: string | null;
  /** The provider's text as received, for the evidence. */
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
  /** The buyer is paying at this moment; the service tries again. */
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
    /** The event concerns no collection, or the adapter does not know its type. */
    | { readonly kind: "none" };
}

/**
 * An owner's settings and secrets, as the service stores them. `newSecrets` were made by `prepare` and are shown once.
 */
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
  /** Checks the owner's settings and secrets, and makes the missing ones. May call the provider. */
  prepare(
    config: {
      readonly name: string;
      readonly settings: Readonly<Record<string, unknown>>;
      readonly secrets: Readonly<Record<string, string>>;
    },
    signal: AbortSignal,
  ): Promise<PreparedConfig>;
  /**
   * Returns a new secret of that name, which the provider accepts from then on. `suppliedSecret` is the owner's secret, if the
   * request has one.
   */
  renewSecret(
    access: ProviderAccess,
    renewal: { readonly name: string; readonly suppliedSecret: string | undefined },
    signal: AbortSignal,
  ): Promise<string>;
  /** The account that the money must reach. */
  accountOf(settings: Readonly<Record<string, unknown>>): string;
  /** `createPayment`, `lookUp` and `cancel` throw `ProviderError`. */
  createPayment(access: ProviderAccess, payment: AskedPayment, signal: AbortSignal): Promise<CreatedPayment>;
  lookUp(access: ProviderAccess, payment: AskedPayment, signal: AbortSignal): Promise<LookUp>;
  cancel(access: ProviderAccess, payment: AskedPayment, signal: AbortSignal): Promise<Cancellation>;
  verify(callback: SignedCallback, secrets: readonly string[], nowMs: number): Verdict;
  /** Accepts any signed bytes: bytes that it cannot read become an asserted payment without facts. */
  decode(body: Uint8Array): CallbackEvent;
}

/** The name of the secret with which every adapter's callbacks are signed. */
export const CALLBACK_SECRET = "callback_secret";

export type Adapters = Readonly<Record<ProviderKind, ProviderAdapter>>;

/** Why a call to a provider failed. */
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

  /** After `provider_refused` there is no payment at the provider. After any other failure there may be one. */
  get mayHaveTakenEffect(): boolean {
    return this.failure !== "provider_refused";
  }
}
