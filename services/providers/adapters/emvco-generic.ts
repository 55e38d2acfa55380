/**
 * `emvco_generic`: writes an EMVCo merchant-presented payload from the owner's merchant data. There is no API to ask:
 * whoever runs the scheme (an acquirer, a bank's gateway) signs a callback when the money is there, and without one the
 * deadline ends the collection.
 *
 * A callback's body: `{"id", "type", "data": {"reference", "transaction_id", "merchant_id", "amount", "currency"}}`.
 * `reference` is the payload's reference label, `amount` a decimal string. The types `payment.paid`, `payment.declined`,
 * `payment.cancelled` and `payment.expired` mean what they say; any other is recorded and does nothing.
 */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { parseAmount } from "../../../machines/currency.ts";
import { verifySignature } from "../secrets/callback-signature.ts";
import { CALLBACK_SECRET, type CallbackEvent, type Decline, type ProviderAdapter } from "./adapter.ts";
import { type MerchantData, merchantDataSchema } from "./emvco/merchant-data.ts";
import { merchantPayload } from "./emvco/merchant-payload.ts";
import { parseJsonBody } from "./json-body.ts";
import { ProviderError } from "./provider-error.ts";
import { parseSettings } from "./refuse-fields.ts";

const SECRET_BYTES = 32;
const madeSecret = (): string => randomBytes(SECRET_BYTES).toString("base64url");

const callbackSchema = z.object({
  id: z.string().min(1).max(200).optional(),
  type: z.string().min(1).max(100),
  data: z.looseObject({}).default({}),
});
const paidSchema = z.object({
  reference: z.string().max(200).default(""),
  transaction_id: z.string().max(128).default(""),
  merchant_id: z.string().max(200).default(""),
  amount: z.string().max(20).nullable().default(null),
  currency: z.string().max(10).nullable().default(null),
});

const DECLINES: ReadonlyMap<string, Decline> = new Map([
  ["payment.declined", "payment_declined"],
  ["payment.cancelled", "buyer_cancelled"],
  ["payment.expired", "provider_expired"],
]);

const parse = (settings: unknown): MerchantData => parseSettings(merchantDataSchema, settings);

export const emvcoGeneric: ProviderAdapter = {
  secretNames: [CALLBACK_SECRET],
  answersQuestions: false,
  parseSettings: parse,
  async prepare({ settings, secrets }) {
    const given = secrets[CALLBACK_SECRET];
    const secret = given ?? madeSecret();
    return {
      settings: parse(settings),
      secrets: { [CALLBACK_SECRET]: secret },
      newSecrets: given === undefined ? { [CALLBACK_SECRET]: secret } : {},
    };
  },
  renewSecret: async (_access, { given }) => given ?? madeSecret(),
  accountOf: (settings) => parse(settings).merchant_account.merchant_id,
  async createPayment({ settings }, payment) {
    try {
      return { qrPayload: merchantPayload(parse(settings), payment), providerReference: "" };
    } catch (cause) {
      throw new ProviderError("provider_refused", "No payload can be written for this payment.", { cause });
    }
  },
  lookUp: async () => ({ status: "unknown" }),
  cancel: async () => ({ status: "unknown" }),
  verify: verifySignature,
  decode,
};

function decode(body: Uint8Array): CallbackEvent | undefined {
  const parsed = callbackSchema.safeParse(parseJsonBody(body));
  if (!parsed.success) return undefined;
  const { id, type, data } = parsed.data;
  const eventId = id ?? null;
  const reason = DECLINES.get(type);
  if (type !== "payment.paid" && reason === undefined) return { eventId, type, effect: { kind: "none" } };
  const said = paidSchema.safeParse(data);
  if (!said.success) return undefined;
  const { reference, transaction_id: providerReference, merchant_id: account, amount, currency } = said.data;
  if (reason !== undefined) return { eventId, type, effect: { kind: "ended", reference, reason } };
  const amountMinor = amount === null || currency === null ? undefined : parseAmount(amount, currency);
  const money = { reference, providerReference, account, amountMinor: amountMinor?.toString() ?? null, currency };
  return { eventId, type, effect: { kind: "paid", money } };
}
