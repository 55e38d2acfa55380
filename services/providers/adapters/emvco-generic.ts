/**
 * `emvco_generic`: writes an EMVCo merchant-presented payload from the owner's merchant data. The provider has no API.
 * The operator of the scheme (an acquirer, a bank's gateway) signs a callback when the money has moved. Without a
 * callback the deadline ends the collection.
 *
 * A callback's body: `{"id", "type", "data": {"reference", "transaction_id", "merchant_id", "amount", "currency"}}`.
 * `reference` is the payload's reference label, `amount` a decimal string. `transaction_id` identifies the money and
 * never changes. A paid event needs it, because money without a reference pays nothing. `payment.paid` is a payment;
 * `payment.declined`, `payment.cancelled` and `payment.expired` are ends. The service records any other type and does
 * nothing else with it.
 */
import { randomBytes } from "node:crypto";
import { CALLBACK_SECRET, type CallbackEvent, type Decline, type ProviderAdapter, ProviderError } from "./adapter.ts";
import { verifySignature } from "./callback-signature.ts";
import { type MerchantData, merchantDataSchema, merchantPayload } from "./emvco-payload.ts";
import { checkedSettings, fieldsOf, nameOfEvent, parseJsonBody, readAssertedPayment, unreadable } from "./reading.ts";

const SECRET_BYTES = 32;
const madeSecret = (): string => randomBytes(SECRET_BYTES).toString("base64url");

const DECLINES: ReadonlyMap<string, Decline> = new Map([
  ["payment.declined", "payment_declined"],
  ["payment.cancelled", "buyer_cancelled"],
  ["payment.expired", "provider_expired"],
]);

const parse = (settings: unknown): MerchantData => checkedSettings(merchantDataSchema, settings);

export const emvcoGeneric: ProviderAdapter = {
  secretNames: [CALLBACK_SECRET],
  answersQuestions: false,
  checkSettings: parse,
  async prepare({ settings, secrets }) {
    const supplied = secrets[CALLBACK_SECRET];
    const secret = supplied ?? madeSecret();
    return {
      settings: parse(settings),
      secrets: { [CALLBACK_SECRET]: secret },
      newSecrets: supplied === undefined ? { [CALLBACK_SECRET]: secret } : {},
    };
  },
  renewSecret: async (_access, { suppliedSecret }) => suppliedSecret ?? madeSecret(),
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

function decode(body: Uint8Array): CallbackEvent {
  const { id, type, data } = fieldsOf(parseJsonBody(body));
  const named = nameOfEvent(id, type);
  if (named === undefined) return unreadable(body);
  const { reference, transaction_id: providerReference, merchant_id: account, amount, currency } = fieldsOf(data);
  const money = readAssertedPayment({ reference, providerReference, account, amount, currency }, data);
  if (named.type === "payment.paid") return { ...named, effect: { kind: "paid", money } };
  const reason = DECLINES.get(named.type);
  if (reason === undefined) return { ...named, effect: { kind: "none" } };
  return { ...named, effect: { kind: "ended", reference: money.reference, reason } };
}
