/**
 * What the product needs of a payment provider. An adapter speaks one kind of provider; it knows nothing of stations,
 * intents or PostgreSQL, and decides nothing: it asks, checks the shape of what comes back, and says it in our words.
 */
import type { EndReason } from "../../../machines/payment-intent.ts";
import type { SignedCallback, Verdict } from "../secrets/callback-signature.ts";

/** How a config gets into a provider: settings and the secrets that it works with. */
export interface ProviderAccess {
  readonly settings: Readonly<Record<string, unknown>>;
  /** Live secrets by name, the newest first. */
  readonly secrets: Readonly<Record<string, readonly string[]>>;
}

/** One payment as it is asked for, and as it is named later. */
export interface AskedPayment {
  /** Ours; a provider that is asked twice with the same one makes one payment. */
  readonly reference: string;
  readonly amountMinor: string;
  readonly currency: string;
  readonly orderDisplayNumber: number;
  readonly expiresAtMs: number;
  readonly callbackUrl: string;
  /** The provider's own reference; empty while it is not known. */
  readonly providerReference: string;
}

export interface CreatedPayment {
  readonly qrPayload: string;
  /** Empty where the provider gives none before the money comes. */
  readonly providerReference: string;
}

/** Money that a provider asserts, as it names it. What it does not say is null or empty, and then does not match. */
export interface AssertedMoney {
  readonly reference: string;
  readonly providerReference: string;
  readonly account: string;
  readonly amountMinor: string | null;
  readonly currency: string | null;
  /** The provider's own words, for the evidence. */
  readonly said: string;
}

/** Why a buyer's payment came to nothing, for certain. */
export type Decline = Extract<EndReason, "payment_declined" | "buyer_cancelled" | "provider_expired">;

export type LookUp =
  | { readonly status: "pending" }
  | { readonly status: "paid"; readonly money: AssertedMoney }
  | { readonly status: "ended"; readonly reason: Decline }
  /** The provider cannot say. */
  | { readonly status: "unknown" };

export type Cancellation =
  /** No money moved and none will. */
  | { readonly status: "cancelled" }
  | { readonly status: "paid"; readonly money: AssertedMoney }
  /** The buyer is just paying; ask again. */
  | { readonly status: "in_progress" }
  /** The provider cannot say, or cannot cancel. */
  | { readonly status: "unknown" };

export interface CallbackEvent {
  /** The provider's own id of the event; null where it has none. */
  readonly eventId: string | null;
  /** The provider's own word, for the record. */
  readonly type: string;
  readonly effect:
    | { readonly kind: "paid"; readonly money: AssertedMoney }
    | { readonly kind: "ended"; readonly reference: string; readonly reason: Decline }
    /** Nothing that concerns a collection, or a kind that did not exist when this was written. */
    | { readonly kind: "none" };
}

/** What an owner gave, as it is stored. `newSecrets` were made, and are shown this once. */
export interface PreparedConfig {
  readonly settings: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, string>>;
  readonly newSecrets: Readonly<Record<string, string>>;
}

export interface ProviderAdapter {
  readonly secretNames: readonly string[];
  /** False: there is nobody to ask; only callbacks and the deadline tell. */
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
  /** A new secret of that name, in force at the provider when this resolves; `given` is the owner's own. */
  renewSecret(
    access: ProviderAccess,
    renewal: { readonly name: string; readonly given: string | undefined },
    signal: AbortSignal,
  ): Promise<string>;
  /** Whom the money must reach. */
  accountOf(settings: Readonly<Record<string, unknown>>): string;
  /** All three throw `ProviderError`. */
  createPayment(access: ProviderAccess, payment: AskedPayment, signal: AbortSignal): Promise<CreatedPayment>;
  lookUp(access: ProviderAccess, payment: AskedPayment, signal: AbortSignal): Promise<LookUp>;
  cancel(access: ProviderAccess, payment: AskedPayment, signal: AbortSignal): Promise<Cancellation>;
  verify(callback: SignedCallback, secrets: readonly string[], nowMs: number): Verdict;
  /** Of signed bytes, whatever they are: what cannot be read is told as money of which nothing is known. */
  decode(body: Uint8Array): CallbackEvent;
}

/** The name of the secret with which every adapter's callbacks are signed. */
export const CALLBACK_SECRET = "callback_secret";
