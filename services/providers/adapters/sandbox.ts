/**
 * `sandbox`: speaks to the sandbox provider over HTTP, as to any other outside party. Its API is described in
 * `services/sandbox-provider/http/api.ts`; here stands only what an adapter needs of it.
 */
import { z } from "zod";
import { formatAmount, parseAmount } from "../../../machines/currency.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { verifySignature } from "../secrets/callback-signature.ts";
import {
  type AssertedMoney,
  CALLBACK_SECRET,
  type CallbackEvent,
  type Cancellation,
  type Decline,
  type LookUp,
  type ProviderAccess,
  type ProviderAdapter,
} from "./adapter.ts";
import type { HttpClient, ProviderAnswer } from "./http-client.ts";
import { parseJsonBody } from "./json-body.ts";
import { ProviderError } from "./provider-error.ts";
import { parseSettings } from "./refuse-fields.ts";

const API_KEY = "api_key";

/** Left out by an owner: an account is opened. */
const givenSchema = z.strictObject({ account: z.string().min(1).max(64).optional() });
const settingsSchema = z.strictObject({ account: z.string().min(1).max(64) });

const accountSchema = z.object({
  account: z.string().min(1).max(64),
  api_key: z.string().min(1).max(PROVIDER_LIMITS.secretCharacters.max),
  callback_secret: z.string().min(1).max(PROVIDER_LIMITS.secretCharacters.max),
});
const renewedSchema = accountSchema.pick({ callback_secret: true });

const paymentSchema = z.object({
  payment_id: z.string().min(1).max(PROVIDER_LIMITS.providerReferenceCharacters),
  reference: z.string().max(200),
  account: z.string().max(64),
  amount: z.string().max(20),
  currency: z.string().max(10),
  status: z.enum(["pending", "in_progress", "paid", "declined", "cancelled", "expired", "unknown"]),
});
type Payment = z.infer<typeof paymentSchema>;
const createdSchema = paymentSchema.extend({ qr_payload: z.string().min(1).max(PROVIDER_LIMITS.qrPayloadCharacters) });

const callbackSchema = z.object({
  event_id: z.string().min(1).max(200).optional(),
  event_type: z.string().min(1).max(100),
  payment: z.unknown(),
});

const ENDS: Readonly<Record<"declined" | "cancelled" | "expired", Decline>> = {
  declined: "payment_declined",
  cancelled: "buyer_cancelled",
  expired: "provider_expired",
};

const END_OF_EVENT: ReadonlyMap<string, Decline> = new Map(
  Object.entries(ENDS).map(([status, reason]) => [`payment.${status}`, reason]),
);

export function sandboxAdapter(http: HttpClient, baseUrl: string): ProviderAdapter {
  const at = (path: string): URL => new URL(path, baseUrl);
  const keyOf = (access: ProviderAccess): string | undefined => access.secrets[API_KEY]?.[0];

  return {
    secretNames: [API_KEY, CALLBACK_SECRET],
    answersQuestions: true,
    parseSettings: (settings) => parseSettings(settingsSchema, settings),
    async prepare({ name, settings, secrets }, signal) {
      const { account } = parseSettings(givenSchema, settings);
      const { [API_KEY]: apiKey, [CALLBACK_SECRET]: callbackSecret } = secrets;
      if (account !== undefined || apiKey !== undefined || callbackSecret !== undefined) {
        if (account === undefined || apiKey === undefined || callbackSecret === undefined) {
          const detail =
            "an account of one's own has an account, an api_key and a callback_secret; leave all out to open one";
          throw new RefusedError({ code: "invalid_request", errors: [{ pointer: "/settings/account", detail }] });
        }
        return {
          settings: { account },
          secrets: { [API_KEY]: apiKey, [CALLBACK_SECRET]: callbackSecret },
          newSecrets: {},
        };
      }
      const answer = await http.ask({
        method: "POST",
        url: at("/v1/accounts"),
        apiKey: undefined,
        body: { name },
        signal,
      });
      const opened = understood(accountSchema, answer);
      const made = { [API_KEY]: opened.api_key, [CALLBACK_SECRET]: opened.callback_secret };
      return { settings: { account: opened.account }, secrets: made, newSecrets: made };
    },
    async renewSecret(access, { name, given }, signal) {
      if (name === API_KEY) {
        if (given !== undefined) return given;
        const detail = "the sandbox provider does not renew API keys; bring the one of another account";
        throw new RefusedError({ code: "invalid_request", errors: [{ pointer: "/secret", detail }] });
      }
      if (given !== undefined) {
        const detail = "the sandbox provider makes its callback secrets itself";
        throw new RefusedError({ code: "invalid_request", errors: [{ pointer: "/secret", detail }] });
      }
      const url = at("/v1/account/callback-secret");
      const answer = await http.ask({ method: "POST", url, apiKey: keyOf(access), body: {}, signal });
      return understood(renewedSchema, answer).callback_secret;
    },
    accountOf: (settings) => parseSettings(settingsSchema, settings).account,
    async createPayment(access, payment, signal) {
      const answer = await http.ask({
        method: "POST",
        url: at("/v1/payments"),
        apiKey: keyOf(access),
        body: {
          reference: payment.reference,
          amount: formatAmount(payment.amountMinor, payment.currency),
          currency: payment.currency,
          description: `Order ${payment.orderDisplayNumber}`,
          expires_at: new Date(payment.expiresAtMs).toISOString(),
          callback_url: payment.callbackUrl,
        },
        signal,
      });
      const created = understood(createdSchema, answer);
      if (created.reference !== payment.reference) {
        throw new ProviderError("provider_answer_invalid", "The provider answered about another payment.");
      }
      return { qrPayload: created.qr_payload, providerReference: created.payment_id };
    },
    async lookUp(access, { reference }, signal): Promise<LookUp> {
      const url = at(`/v1/payments/by-reference/${encodeURIComponent(reference)}`);
      const answer = await http.ask({ method: "GET", url, apiKey: keyOf(access), signal });
      if (answer.status === 404) return { status: "unknown" };
      return lookUpOf(understood(paymentSchema, answer));
    },
    async cancel(access, { reference }, signal): Promise<Cancellation> {
      const url = at(`/v1/payments/by-reference/${encodeURIComponent(reference)}/cancel`);
      const payment = understood(
        paymentSchema,
        await http.ask({ method: "POST", url, apiKey: keyOf(access), body: {}, signal }),
      );
      if (payment.status === "paid") return { status: "paid", money: moneyOf(payment) };
      if (payment.status === "pending" || payment.status === "in_progress") return { status: "in_progress" };
      return { status: payment.status === "unknown" ? "unknown" : "cancelled" };
    },
    verify: verifySignature,
    decode,
  };
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

function moneyOf({ reference, payment_id, account, amount, currency }: Payment): AssertedMoney {
  const amountMinor = parseAmount(amount, currency)?.toString() ?? null;
  return { reference, providerReference: payment_id, account, amountMinor, currency };
}

/** A 4xx is the provider's refusal; anything of another shape is no answer. */
function understood<TSchema extends z.ZodType>(schema: TSchema, { status, json }: ProviderAnswer): z.infer<TSchema> {
  if (status >= 400) throw new ProviderError("provider_refused", `The provider refused with ${status}.`);
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  throw new ProviderError("provider_answer_invalid", "The provider's answer is not of its documented shape.");
}

function decode(body: Uint8Array): CallbackEvent | undefined {
  const parsed = callbackSchema.safeParse(parseJsonBody(body));
  if (!parsed.success) return undefined;
  const { event_id, event_type: type } = parsed.data;
  const eventId = event_id ?? null;
  const end = END_OF_EVENT.get(type);
  if (type !== "payment.paid" && end === undefined) return { eventId, type, effect: { kind: "none" } };
  const payment = paymentSchema.safeParse(parsed.data.payment);
  if (!payment.success) return undefined;
  const { reference } = payment.data;
  if (end !== undefined) return { eventId, type, effect: { kind: "ended", reference, reason: end } };
  return { eventId, type, effect: { kind: "paid", money: moneyOf(payment.data) } };
}
