/**
 * The API of the sandbox provider. Bearer key, JSON, amounts as decimal strings.
 *
 *   POST /v1/accounts                                  {name}            opens an account; its secrets are shown this once (the installation's key)
 *   POST /v1/account/callback-secret                   {}                a new callback secret
 *   POST /v1/payments                                  a payment         idempotent by reference
 *   GET  /v1/payments/by-reference/{reference}                           what became of it
 *   POST /v1/payments/by-reference/{reference}/cancel  {}                cancels it, unless it is paid
 *   GET  /magic-amounts                                (no key)          which amount does what
 *   GET  /v1/statement.json, /v1/statement.csv         ?after=&limit=    paid payments in the order of their lines
 */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { amountFitsWire, parseAmount } from "../../../machines/currency.ts";
import { comeLate, newPaymentId } from "../decide.ts";
import { decidesAtMs } from "../deciding.ts";
import type { SandboxDeps } from "../deps.ts";
import { SANDBOX_LIMITS } from "../limits.ts";
import { scenarioOf } from "../magic-amounts.ts";
import { type PaymentOnWire, paymentOnWire } from "../payment-wire.ts";
import { apiKeyHash, callbackSecret, newApiKey } from "../secrets.ts";
import { type AccountRow, insertAccount, nextSecretGeneration } from "../sql/accounts.ts";
import * as payments from "../sql/payments.ts";
import { ApiError, parsed, type Reply } from "./reply.ts";

const text = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[^\0]*$/, "no NUL");
const accountSchema = z.strictObject({ name: text(200) });
const paymentSchema = z.strictObject({
  reference: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "1 to 64 letters, digits, - and _"),
  amount: z.string(),
  currency: z.string().regex(/^[A-Z]{3}$/, "an ISO 4217 code"),
  description: text(200),
  expires_at: z.iso.datetime(),
  callback_url: z.url({ protocol: /^https?$/ }).max(2_000),
});
const nothing = z.strictObject({});

export async function openAccount(deps: SandboxDeps, body: unknown): Promise<Reply> {
  const { name } = parsed(accountSchema, body);
  const accountId = `acct_${randomBytes(9).toString("hex")}`;
  const apiKey = newApiKey();
  const account = { accountId, name, apiKeyHash: apiKeyHash(apiKey), most: SANDBOX_LIMITS.accounts };
  if (!(await deps.database.begin((sql) => insertAccount(sql, account)))) {
    throw new ApiError(409, "too_many_accounts", `This sandbox has ${SANDBOX_LIMITS.accounts} accounts already.`);
  }
  const secret = callbackSecret(deps.key, accountId, 1);
  return { status: 201, json: { account: accountId, api_key: apiKey, callback_secret: secret } };
}

export async function renewCallbackSecret(deps: SandboxDeps, account: AccountRow, body: unknown): Promise<Reply> {
  parsed(nothing, body);
  const { account_id: accountId } = account;
  const generation = await nextSecretGeneration(deps.database, accountId, SANDBOX_LIMITS.secretOverlapMs);
  return { status: 200, json: { callback_secret: callbackSecret(deps.key, accountId, generation) } };
}

export async function createPayment(deps: SandboxDeps, account: AccountRow, body: unknown): Promise<Reply> {
  const asked = checkPayment(deps, body);
  const scenario = scenarioOf(asked.amountMinor);
  if (scenario === "provider_down") throw new ApiError(503, "unavailable", "The provider is down.");
  if (scenario === "refuse") throw new ApiError(422, "payment_refused", "The provider refuses this payment.");
  if (scenario === "garbage") return { status: 200, text: "<html>Everything is fine.</html>" };
  if (scenario === "provider_hangs") {
    await delay(SANDBOX_LIMITS.hangMs, undefined, { ref: false });
    throw new ApiError(503, "unavailable", "The provider has hung.");
  }
  const times = { nowMs: Date.now(), expiresAtMs: asked.expiresAtMs, afterMs: deps.decidesAfterMs };
  const key = { accountId: account.account_id, reference: asked.reference };
  const isNew = await payments.insertPayment(deps.database, {
    ...asked,
    ...key,
    paymentId: newPaymentId(),
    scenario,
    decidesAtMs: decidesAtMs(scenario, times),
  });
  const payment = await payments.findByReference(deps.database, key);
  if (payment === undefined) throw new Error("A payment has vanished.");
  if (payment.amount_minor !== asked.amountMinor || payment.currency !== asked.currency) {
    throw new ApiError(409, "reference_taken", "Another payment has this reference.");
  }
  if (scenario === "early_callback") await delay(SANDBOX_LIMITS.overtakenMs, undefined, { ref: false });
  const qrPayload = deps.guestUrl(payment.payment_id);
  return { status: isNew ? 201 : 200, json: { ...paymentOnWire(payment), qr_payload: qrPayload } };
}

function checkPayment(
  deps: SandboxDeps,
  body: unknown,
): Pick<payments.NewPayment, "reference" | "amountMinor" | "currency" | "description" | "callbackUrl" | "expiresAtMs"> {
  const { reference, amount, currency, description, ...rest } = parsed(paymentSchema, body);
  const amountMinor = parseAmount(amount, currency);
  if (amountMinor === undefined || !amountFitsWire(amountMinor, currency)) {
    throw invalid("amount", `a decimal string of the currency ${currency}`);
  }
  const expiresAtMs = Date.parse(rest.expires_at);
  const leftMs = expiresAtMs - Date.now();
  if (leftMs <= 0 || leftMs > SANDBOX_LIMITS.longestPaymentMs) throw invalid("expires_at", "within the next 24 hours");
  if (new URL(rest.callback_url).origin !== deps.callbackOrigin) {
    throw invalid("callback_url", `this sandbox sends callbacks to ${deps.callbackOrigin} only`);
  }
  return {
    reference,
    amountMinor: amountMinor.toString(),
    currency,
    description,
    callbackUrl: rest.callback_url,
    expiresAtMs,
  };
}

function invalid(field: string, detail: string): ApiError {
  return new ApiError(422, "invalid_request", "The request is not what this API documents.", [{ field, detail }]);
}

export async function getPayment(deps: SandboxDeps, account: AccountRow, reference: string): Promise<Reply> {
  const payment = await payments.findByReference(deps.database, { accountId: account.account_id, reference });
  if (payment === undefined) throw new ApiError(404, "payment_unknown", "There is no payment with this reference.");
  return { status: 200, json: paymentOnWire(payment) };
}

/**
 * Cancels; what is paid stays paid. A reference that was never asked for is answered as cancelled, and stays so: a
 * payment that arrives afterwards with it is not made.
 */
export async function cancelPayment(
  deps: SandboxDeps,
  account: AccountRow,
  asked: { readonly reference: string; readonly body: unknown },
): Promise<Reply> {
  parsed(nothing, asked.body);
  const key = { accountId: account.account_id, reference: asked.reference };
  const known = await payments.findByReference(deps.database, key);
  if (known === undefined) return { status: 200, json: await neverAsked(deps, key) };
  const payment = await deps.database.begin(async (sql): Promise<PaymentOnWire> => {
    const held = await payments.lockPayment(sql, known.payment_id);
    if (held === undefined) throw new Error("A payment has vanished.");
    if (held.status !== "pending" || held.scenario === "unknown") return paymentOnWire(held);
    if (held.scenario === "late_success") {
      if (held.decides_at !== null && held.decides_at.getTime() > Date.now() + SANDBOX_LIMITS.lateMs) {
        await comeLate(sql, held);
      }
      return { ...paymentOnWire(held), status: "in_progress" };
    }
    await payments.setDecision(sql, held.payment_id, { status: "cancelled", asserted: null, statementLine: null });
    return { ...paymentOnWire(held), status: "cancelled" };
  });
  return { status: 200, json: payment };
}

async function neverAsked(deps: SandboxDeps, key: payments.PaymentKey): Promise<PaymentOnWire> {
  const nowMs = Date.now();
  const paymentId = newPaymentId();
  const made = {
    ...key,
    paymentId,
    amountMinor: "0",
    currency: "XXX",
    description: "cancelled before it was asked for",
    callbackUrl: deps.callbackOrigin,
    scenario: "approve" as const,
    decidesAtMs: nowMs,
    expiresAtMs: nowMs,
  };
  await deps.database.begin(async (sql) => {
    if (!(await payments.insertPayment(sql, made))) return;
    await payments.setDecision(sql, paymentId, { status: "cancelled", asserted: null, statementLine: null });
  });
  return {
    payment_id: paymentId,
    reference: key.reference,
    account: key.accountId,
    amount: "0.00",
    currency: "XXX",
    status: "cancelled",
  };
}
