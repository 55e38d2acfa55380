/** Payments by the API: creates, looks up and cancels them, and the statement of what was paid. Amounts are decimal strings. */
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { amountFitsWire, parseAmount } from "../../machines/currency.ts";
import { currentRequestId } from "../runtime/log.ts";
import { decidesAtMs, newPaymentId, type PaymentJson, paymentJson, scheduleLateMoney } from "./decisions.ts";
import { ApiError, emptyBodySchema, parsed, printableText, type Reply, type SandboxDeps } from "./deps.ts";
import { SANDBOX_LIMITS } from "./limits.ts";
import { scenarioOf } from "./magic-amounts.ts";
import * as sql from "./sql.ts";

const paymentSchema = z.strictObject({
  reference: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "1 to 64 letters, digits, - and _"),
  amount: z.string(),
  currency: z.string().regex(/^[A-Z]{3}$/, "an ISO 4217 code"),
  description: printableText(200),
  expires_at: z.iso.datetime(),
  callback_url: z.url({ protocol: /^https?$/ }).max(2_000),
});

export async function createPayment(deps: SandboxDeps, account: sql.AccountRow, body: unknown): Promise<Reply> {
  const nowMs = await sql.readNowMs(deps.database);
  const asked = checkPayment(deps, body, nowMs);
  const scenario = scenarioOf(asked.amountMinor, asked.currency);
  if (scenario === "provider_down") throw new ApiError(503, "unavailable", "The provider is down.");
  if (scenario === "refuse") throw new ApiError(422, "payment_refused", "The provider refuses this payment.");
  if (scenario === "garbage") return { status: 200, text: "<html>Everything is fine.</html>" };
  if (scenario === "provider_hangs") {
    await delay(SANDBOX_LIMITS.hangMs, undefined, { ref: false });
    throw new ApiError(503, "unavailable", "The provider has hung.");
  }
  const times = { nowMs, expiresAtMs: asked.expiresAtMs, afterMs: deps.decidesAfterMs };
  const key = { accountId: account.account_id, reference: asked.reference };
  const isNew = await sql.insertPayment(deps.database, {
    ...asked,
    ...key,
    paymentId: newPaymentId(),
    scenario,
    decidesAtMs: decidesAtMs(scenario, times),
    requestId: currentRequestId() ?? null,
  });
  const payment = await sql.findByReference(deps.database, key);
  if (payment === undefined) throw new Error("A payment is missing.");
  if (payment.amount_minor !== asked.amountMinor || payment.currency !== asked.currency) {
    throw new ApiError(409, "reference_taken", "Another payment has this reference.");
  }
  if (scenario === "early_callback") await delay(SANDBOX_LIMITS.overtakenMs, undefined, { ref: false });
  const qrPayload = deps.guestUrl(payment.payment_id);
  return { status: isNew ? 201 : 200, json: { ...paymentJson(payment), qr_payload: qrPayload } };
}

function checkPayment(
  deps: SandboxDeps,
  body: unknown,
  nowMs: number,
): Pick<sql.NewPayment, "reference" | "amountMinor" | "currency" | "description" | "callbackUrl" | "expiresAtMs"> {
  const { reference, amount, currency, description, ...rest } = parsed(paymentSchema, body);
  const amountMinor = parseAmount(amount, currency);
  if (amountMinor === undefined || !amountFitsWire(amountMinor, currency)) {
    throw invalid("amount", `a decimal string of the currency ${currency}`);
  }
  const expiresAtMs = Date.parse(rest.expires_at);
  const leftMs = expiresAtMs - nowMs;
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

export async function getPayment(deps: SandboxDeps, account: sql.AccountRow, reference: string): Promise<Reply> {
  const payment = await sql.findByReference(deps.database, { accountId: account.account_id, reference });
  if (payment === undefined) throw new ApiError(404, "payment_unknown", "There is no payment with this reference.");
  return { status: 200, json: paymentJson(payment) };
}

/**
 * Cancels a payment; a paid one stays paid. For an unknown reference it stores a cancelled payment, so that a payment
 * that arrives later under this reference is not made.
 */
export async function cancelPayment(
  deps: SandboxDeps,
  account: sql.AccountRow,
  asked: { readonly reference: string; readonly body: unknown },
): Promise<Reply> {
  parsed(emptyBodySchema, asked.body);
  const key = { accountId: account.account_id, reference: asked.reference };
  const known = await sql.findByReference(deps.database, key);
  if (known === undefined) return { status: 200, json: await storeCancelled(deps, key) };
  const payment = await deps.database.begin(async (tx): Promise<PaymentJson> => {
    const held = await sql.lockPayment(tx, known.payment_id);
    if (held === undefined) throw new Error("A payment is missing.");
    if (held.status !== "pending" || held.scenario === "unknown") return paymentJson(held);
    if (held.scenario === "late_success") {
      const latestMs = (await sql.readNowMs(tx)) + SANDBOX_LIMITS.lateMs;
      if (held.decides_at !== null && held.decides_at.getTime() > latestMs) {
        await scheduleLateMoney(tx, held);
      }
      return { ...paymentJson(held), status: "in_progress" };
    }
    await sql.setDecision(tx, held.payment_id, { status: "cancelled", asserted: null, statementLine: null });
    return { ...paymentJson(held), status: "cancelled" };
  });
  return { status: 200, json: payment };
}

async function storeCancelled(deps: SandboxDeps, key: sql.PaymentKey): Promise<PaymentJson> {
  const nowMs = await sql.readNowMs(deps.database);
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
    requestId: currentRequestId() ?? null,
  };
  await deps.database.begin(async (tx) => {
    if (!(await sql.insertPayment(tx, made))) return;
    await sql.setDecision(tx, paymentId, { status: "cancelled", asserted: null, statementLine: null });
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

const { default: defaultLines, max } = SANDBOX_LIMITS.statementLines;
const querySchema = z.strictObject({
  after: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(max).default(defaultLines),
});

/** The columns of the CSV statement, as docs/sandbox.md has them. */
export const STATEMENT_COLUMNS = [
  "line",
  "payment_id",
  "reference",
  "account",
  "amount",
  "currency",
  "paid_at",
] as const;
type Line = Readonly<Record<(typeof STATEMENT_COLUMNS)[number], string | number>>;

/** A page; the next one begins behind `next_after`, which is null on the last page. */
export async function getStatement(
  deps: SandboxDeps,
  account: sql.AccountRow,
  asked: { readonly format: "json" | "csv"; readonly query: URLSearchParams },
): Promise<Reply> {
  const { after, limit } = parsed(querySchema, Object.fromEntries(asked.query));
  // One row more shows whether there is a further page.
  const rows = await sql.selectStatement(deps.database, { accountId: account.account_id, after, limit: limit + 1 });
  const lines = rows.slice(0, limit).map(lineOf);
  const nextAfter = rows.length > limit ? (lines.at(-1)?.line ?? null) : null;
  if (asked.format === "json") return { status: 200, json: { lines, next_after: nextAfter } };
  return {
    status: 200,
    text: [STATEMENT_COLUMNS.join(","), ...lines.map(csvLine)].join("\r\n").concat("\r\n"),
    headers: {
      "content-type": "text/csv; charset=utf-8",
      ...(nextAfter === null ? {} : { "x-next-after": String(nextAfter) }),
    },
  };
}

function lineOf(payment: sql.PaymentRow): Line {
  const { payment_id, reference, account, amount, currency } = paymentJson(payment);
  const paidAt = payment.decided_at?.toISOString() ?? "";
  return { line: payment.statement_line ?? 0, payment_id, reference, account, amount, currency, paid_at: paidAt };
}

/** RFC 4180: a field with a comma, a quote or a line's end is in quotes. */
function csvLine(line: Line): string {
  return STATEMENT_COLUMNS.map((column) => {
    const field = String(line[column]);
    return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
  }).join(",");
}
