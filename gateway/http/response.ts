/** What an answer consists of: status line, common headers, JSON body; `answer-writer.ts` sends it. */

import { formatAmount } from "../../machines/currency.ts";
import type { EarlierSale } from "../../machines/payment-intent.ts";
import { RefusedError, UnavailableError } from "../../services/bus/refusals.ts";
import { STATUS_CODES } from "../../services/runtime/node-http.ts";
import { ERRORS, type ErrorCode } from "./errors.ts";
import { Refusal, type RefusalFacts, type Reply } from "./handler-context.ts";
import { type ErrorBody, toTimestamp } from "./shared-schemas.ts";

export type Headers = Readonly<Record<string, string>>;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The values of `Set-Cookie` headers. */
  readonly cookies?: readonly string[] | undefined;
  /** Text or bytes; undefined is no body. */
  readonly body: string | Uint8Array | undefined;
  /** Of a refusal. */
  readonly code?: ErrorCode;
}

const STATUS_LINES = new Map<number, string>(
  Object.entries(STATUS_CODES).map(([status, reason]) => [Number(status), `${status} ${reason}`]),
);

export function statusLine(status: number): string {
  return STATUS_LINES.get(status) ?? `${status} Unknown`;
}

/** Headers of every answer: a browser takes the type of a body as given, and sends this service's URLs to no other site. */
export const SECURITY_HEADERS: Headers = {
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

/** The answer to a refusal: `{"code","detail","request_id"}` and what the facts add (design §4, "error body"). */
export function errorAnswer(code: ErrorCode, requestId: string, facts: RefusalFacts = {}): Answer {
  const meaning = ERRORS[code];
  const { status, reason, earlierIntentId, earlierSale, errors } = facts;
  return {
    code,
    status: meaning.status,
    headers: {
      "Content-Type": "application/json",
      "Cache-Control": "no-store",
      "X-Request-Id": requestId,
      ...SECURITY_HEADERS,
      ...authenticateHeader(code, meaning.status),
      ...retryHeader(meaning.status, facts.retryAfterMs),
      ...facts.headers,
    },
    // Undefined fields are left out by JSON itself.
    body: JSON.stringify({
      code,
      detail: facts.detail ?? meaning.sentence,
      request_id: requestId,
      status,
      reason,
      earlier_intent_id: earlierIntentId,
      earlier_order: earlierSale && earlierOrderJson(earlierSale),
      errors,
    }),
  };
}

/** RFC 9110 asks for it with each 401, RFC 6750 says how a bearer credential was wrong. */
function authenticateHeader(code: ErrorCode, status: number): Headers {
  if (status !== 401) return {};
  // No bearer: what is asked for is a signature over the body.
  if (code === "signature_invalid") return { "WWW-Authenticate": 'Provider-Signature realm="device-payments"' };
  const isWrong = code === "credential_invalid" || code === "session_invalid" || code === "platform_key_invalid";
  return { "WWW-Authenticate": `Bearer realm="device-payments"${isWrong ? ', error="invalid_token"' : ""}` };
}

function retryHeader(status: number, retryAfterMs: number | undefined): Headers {
  if (retryAfterMs === undefined && status !== 503 && status !== 429) return {};
  return { "Retry-After": String(Math.max(1, Math.ceil((retryAfterMs ?? 1_000) / 1_000))) };
}

/** The order that a reference has settled before. */
function earlierOrderJson(sale: EarlierSale): NonNullable<ErrorBody["earlier_order"]> {
  return {
    order_id: sale.orderId,
    order_display_number: sale.orderDisplayNumber,
    station_name: sale.stationName,
    amount: formatAmount(sale.amountMinor, sale.currency),
    currency: sale.currency,
    settled_at: toTimestamp(sale.settledAtMs),
  };
}

export interface RefusalOf {
  readonly code: ErrorCode;
  readonly facts: RefusalFacts;
  /** True when the error is a fault of the program: it goes to the log with its stack. */
  readonly isUnexpected: boolean;
}

/** The one place that turns a thrown error into a refusal. */
export function refusalOf(error: unknown): RefusalOf {
  if (error instanceof Refusal) return { code: error.code, facts: error.facts, isUnexpected: false };
  if (error instanceof RefusedError) {
    const { code, ...facts } = error.refusal;
    return { code, facts, isUnexpected: false };
  }
  if (error instanceof UnavailableError) {
    return { code: "unavailable", facts: { retryAfterMs: 1_000 }, isUnexpected: false };
  }
  return { code: "internal_error", facts: {}, isUnexpected: true };
}

export const EFFECTIVE_HEADER = "X-Effective";

/**
 * The answer to a change that is stored and not yet effective, from the answer to an effective one:
 *
 *   effective answer      answer to a change that is not yet effective
 *   200 with a body       202 with the same body and `"effective": false`
 *   204 without a body    202 with `{"effective": false}`
 *   201                   201 with the same body: what was created exists, and enroll's body is the contract's
 *
 * Each of them has the header `X-Effective: false`. The document has this for each route with `awaitsEffect`.
 */
export function notEffective(reply: Reply): Reply {
  const headers = { ...reply.headers, [EFFECTIVE_HEADER]: "false" };
  if (reply.status === 201) return { ...reply, headers };
  return { ...reply, status: 202, body: { ...(reply.body as object | undefined), effective: false }, headers };
}
