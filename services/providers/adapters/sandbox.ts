/**
 * `sandbox`: calls the sandbox provider over HTTP, like any external provider. `services/sandbox-provider/server.ts`
 * describes its API; this file has only what the adapter needs.
 */
import { z } from "zod";
import { formatAmount, parseAmount } from "../../../machines/currency.ts";
import { comparableReference } from "../../bus/messages/intents.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import {
  type AskedPayment,
  type AssertedPayment,
  CALLBACK_SECRET,
  type CallbackEvent,
  type Cancellation,
  type Decline,
  type LookUp,
  type ProviderAccess,
  type ProviderAdapter,
  ProviderError,
} from "./adapter.ts";
import { verifySignature } from "./callback-signature.ts";
import type { HttpClient, ProviderAnswer } from "./http-client.ts";
import { checkedSettings, fieldsOf, nameOfEvent, parseJsonBody, readAssertedPayment, unreadable } from "./reading.ts";

const API_KEY = "api_key";

const accountName = z.string().min(1).max(PROVIDER_LIMITS.assertedAccountCharacters);

/** Without an account the adapter opens one. */
const givenSchema = z.strictObject({ account: accountName.optional() });
const settingsSchema = z.strictObject({ account: accountName });

const accountSchema = z.object({
  account: accountName,
  api_key: z.string().min(1).max(PROVIDER_LIMITS.secretCharacters.max),
  callback_secret: z.string().min(1).max(PROVIDER_LIMITS.secretCharacters.max),
});
const renewedSchema = accountSchema.pick({ callback_secret: true });

const paymentSchema = z.object({
  payment_id: z.string().min(1).max(PROVIDER_LIMITS.providerReferenceCharacters),
  reference: z.string().max(PROVIDER_LIMITS.assertedReferenceCharacters),
  account: z.string().max(PROVIDER_LIMITS.assertedAccountCharacters),
  amount: z.string().max(PROVIDER_LIMITS.saidAmountCharacters),
  currency: z.string().max(PROVIDER_LIMITS.saidCurrencyCharacters),
  status: z.enum(["pending", "in_progress", "paid", "declined", "cancelled", "expired", "unknown"]),
});
type Payment = z.infer<typeof paymentSchema>;
const createdSchema = paymentSchema.extend({ qr_payload: z.string().min(1).max(PROVIDER_LIMITS.qrPayloadCharacters) });

const ENDS: Readonly<Record<"declined" | "cancelled" | "expired", Decline>> = {
  declined: "payment_declined",
  cancelled: "buyer_cancelled",
  expired: "provider_expired",
};

const END_OF_EVENT: ReadonlyMap<string, Decline> = new Map(
  Object.entries(ENDS).map(([status, reason]) => [`payment.${status}`, reason]),
);

interface SandboxProviderPlace {
  readonly url: string;
  /** The key that opens accounts at the sandbox provider. */
  readonly installationKey: string | undefined;
}

export function sandboxAdapter(
  http: HttpClient,
  { url: baseUrl, installationKey }: SandboxProviderPlace,
): ProviderAdapter {
  const at = (path: string): URL => new URL(path, baseUrl);
  const keyOf = (access: ProviderAccess): string | undefined => access.secrets[API_KEY]?.[0];

  return {
    secretNames: [API_KEY, CALLBACK_SECRET],
    answersQuestions: true,
    checkSettings: (settings) => checkedSettings(settingsSchema, settings),
    async prepare({ name, settings, secrets }, signal) {
      const { account } = checkedSettings(givenSchema, settings);
      const { [API_KEY]: apiKey, [CALLBACK_SECRET]: callbackSecret } = secrets;
      if (account !== undefined || apiKey !== undefined || callbackSecret !== undefined) {
        if (account === undefined || apiKey === undefined || callbackSecret === undefined) {
          const detail =
            "an existing account has an account, an api_key and a callback_secret; leave all out to open one";
          throw doesNotFit("/settings/account", detail);
        }
        return {
          settings: { account },
          secrets: { [API_KEY]: apiKey, [CALLBACK_SECRET]: callbackSecret },
          newSecrets: {},
        };
      }
      const url = at("/v1/accounts");
      const opened = await http.ask(
        { operation: "account_open", method: "POST", url, apiKey: installationKey, body: { name }, signal },
        (answer) => understood(accountSchema, answer),
      );
      const made = { [API_KEY]: opened.api_key, [CALLBACK_SECRET]: opened.callback_secret };
      return { settings: { account: opened.account }, secrets: made, newSecrets: made };
    },
    async renewSecret(access, { name, suppliedSecret }, signal) {
      if (name === API_KEY) {
        if (suppliedSecret !== undefined) return suppliedSecret;
        throw doesNotFit("/secret", "the sandbox provider does not renew API keys; bring the one of another account");
      }
      if (suppliedSecret !== undefined) {
        throw doesNotFit("/secret", "the sandbox provider makes its callback secrets itself");
      }
      const url = at("/v1/account/callback-secret");
      const renewed = await http.ask(
        { operation: "secret_renew", method: "POST", url, apiKey: keyOf(access), body: {}, signal },
        (answer) => understood(renewedSchema, answer),
      );
      return renewed.callback_secret;
    },
    accountOf: (settings) => checkedSettings(settingsSchema, settings).account,
    async createPayment(access, payment, signal) {
      const settings = checkedSettings(settingsSchema, access.settings);
      const body = {
        reference: payment.reference,
        amount: formatAmount(payment.amountMinor, payment.currency),
        currency: payment.currency,
        description: `Order ${payment.orderDisplayNumber}`,
        expires_at: new Date(payment.expiresAtMs).toISOString(),
        callback_url: payment.callbackUrl,
      };
      const url = at("/v1/payments");
      return await http.ask(
        { operation: "payment_create", method: "POST", url, apiKey: keyOf(access), body, signal },
        (answer) => {
          const created = understood(createdSchema, answer);
          requireAsked(created, payment, settings.account);
          // Stored in the form in which every later reference is read, so that both compare equal.
          return { qrPayload: created.qr_payload, providerReference: comparableReference(created.payment_id) };
        },
      );
    },
    async lookUp(access, asked, signal): Promise<LookUp> {
      const url = at(`/v1/payments/by-reference/${encodeURIComponent(asked.reference)}`);
      return await http.ask(
        { operation: "payment_look_up", method: "GET", url, apiKey: keyOf(access), signal },
        (answer): LookUp => (answer.status === 404 ? { status: "unknown" } : lookUpOf(understoodAbout(asked, answer))),
      );
    },
    async cancel(access, asked, signal): Promise<Cancellation> {
      const url = at(`/v1/payments/by-reference/${encodeURIComponent(asked.reference)}/cancel`);
      const payment = await http.ask(
        { operation: "payment_cancel", method: "POST", url, apiKey: keyOf(access), body: {}, signal },
        (answer) => understoodAbout(asked, answer),
      );
      if (payment.status === "paid") return { status: "paid", money: moneyOf(payment) };
      if (payment.status === "pending" || payment.status === "in_progress") return { status: "in_progress" };
      return { status: payment.status === "unknown" ? "unknown" : "cancelled" };
    },
    verify: verifySignature,
    decode,
  };
}

function doesNotFit(pointer: string, detail: string): RefusedError {
  return new RefusedError({ code: "invalid_request", errors: [{ pointer, code: "does_not_fit", detail }] });
}

function lookUpOf(payment: Payment): LookUp {
  switch (payment.status) {
    case "paid":
      return { status: "paid", money: moneyOf(payment) };
    case "declined":
    case "cancelled":
    case "expired":
      return { status: "ended", reason: ENDS[payment.status] };
    case "pending":
    case "in_progress":
      return { status: "pending" };
    case "unknown":
      return { status: "unknown" };
  }
}

function moneyOf(payment: unknown): AssertedPayment {
  const { reference, payment_id: providerReference, account, amount, currency } = fieldsOf(payment);
  return readAssertedPayment({ reference, providerReference, account, amount, currency }, payment);
}

/** The QR must be for the requested payment, and must hold no invisible characters. */
function requireAsked(created: z.infer<typeof createdSchema>, asked: AskedPayment, account: string): void {
  const amountMinor = parseAmount(created.amount, created.currency)?.toString();
  const isAsked =
    created.reference === asked.reference &&
    created.account === account &&
    created.currency === asked.currency &&
    amountMinor === asked.amountMinor;
  if (!isAsked) throw new ProviderError("provider_answer_invalid", "The provider answered about another payment.");
  if (INVISIBLE.test(created.qr_payload)) {
    throw new ProviderError("provider_answer_invalid", "The provider's QR payload holds invisible characters.");
  }
}

/** Control characters, format characters such as direction marks, lone surrogates, and line breaks. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/**
 * An answer about the requested payment. A paid answer needs one of the two references, because a difference becomes an
 * issue. Any other answer needs both, as far as the provider's reference is known.
 */
function understoodAbout({ reference, providerReference }: AskedPayment, answer: ProviderAnswer): Payment {
  const payment = understood(paymentSchema, answer);
  const isOurs = payment.reference === reference;
  const isTheirs = comparableReference(payment.payment_id) === providerReference;
  const isAsked = payment.status === "paid" ? isOurs || isTheirs : isOurs && (isTheirs || providerReference === "");
  if (isAsked) return payment;
  throw new ProviderError("provider_answer_invalid", "The provider answered about another payment.");
}

/** A 4xx is the provider's refusal. An answer of another shape is invalid. */
function understood<TSchema extends z.ZodType>(schema: TSchema, { status, json }: ProviderAnswer): z.infer<TSchema> {
  if (status >= 400) throw new ProviderError("provider_refused", `The provider refused with ${status}.`);
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  throw new ProviderError("provider_answer_invalid", "The provider's answer is not of its documented shape.");
}

function decode(body: Uint8Array): CallbackEvent {
  const { event_id, event_type, payment } = fieldsOf(parseJsonBody(body));
  const named = nameOfEvent(event_id, event_type);
  if (named === undefined) return unreadable(body);
  const money = moneyOf(payment);
  if (named.type === "payment.paid") return { ...named, effect: { kind: "paid", money } };
  const reason = END_OF_EVENT.get(named.type);
  if (reason === undefined) return { ...named, effect: { kind: "none" } };
  return { ...named, effect: { kind: "ended", reference: money.reference, reason } };
}
