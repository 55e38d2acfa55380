/** The parts of an answer: status line, common headers, JSON body. `answer-writer.ts` sends it. */

import { formatAmount } from "../../machines/currency.ts";
import type { EarlierSale } from "../../machines/payment-intent.ts";
import { RefusedError, UnavailableError } from "../../services/bus/refusals.ts";
import { STATUS_CODES } from "../../services/runtime/node-http.ts";
import { ERRORS, type ErrorCode } from "./errors.ts";
import { ApiError, type ErrorFacts, type Reply } from "./handler-context.ts";
import { type ErrorBody, toTimestamp } from "./shared-schemas.ts";

export type Headers = Readonly<Record<string, string>>;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The values of `Set-Cookie` headers. */
  readonly cookies?: readonly string[] | undefined;
  /** Text or bytes. Undefined means no body. */
  readonly body: string | Uint8Array | undefined;
  /** The code of an error answer. */
  readonly code?: ErrorCode;
}

const STATUS_LINES = new Map<number, string>(
  Object.entries(STATUS_CODES).map(([status, reason]) => [Number(status), `${status} ${reason}`]),
);

export function statusLine(status: number): string {
  return STATUS_LINES.get(status) ?? `${status} Unknown`;
}

/** Headers of every answer: a browser must not guess the type of a body, or send this service's URLs to another site. */
export const SECURITY_HEADERS: Headers = {
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

/** An error answer: `{"code","detail","request_id"}` and the fields from `facts` (design §4, "error body"). */
export function errorAnswer(code: ErrorCode, requestId: string, facts: ErrorFacts = {}): Answer {
  const meaning = ERRORS[code];
  const { status, reason, earlierIntentId, reasonNumber, earlierSale, errors } = facts;
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
    // JSON leaves out undefined fields.
    body: JSON.stringify({
      code,
      detail: facts.detail ?? meaning.sentence,
      request_id: requestId,
      status,
      reason,
      earlier_intent_id: earlierIntentId,
      reason_number: reasonNumber,
      earlier_order: earlierSale && earlierOrderJson(earlierSale),
      errors,
    }),
  };
}

/** RFC 9110 requires this header with each 401. RFC 6750 defines how it describes the error of a bearer credential. */
function authenticateHeader(code: ErrorCode, status: number): Headers {
  if (status !== 401) return {};
  // Not `Bearer`: the route requires a signature over the body.
  if (code === "signature_invalid") return { "WWW-Authenticate": 'Provider-Signature realm="device-payments"' };
  const isWrong = code === "credential_invalid" || code === "session_invalid" || code === "platform_key_invalid";
  return { "WWW-Authenticate": `Bearer realm="device-payments"${isWrong ? ', error="invalid_token"' : ""}` };
}

function retryHeader(status: number, retryAfterMs: number | undefined): Headers {
  if (retryAfterMs === undefined && status !== 503 && status !== 429) return {};
  return { "Retry-After": String(Math.max(1, Math.ceil((retryAfterMs ?? 1_000) / 1_000))) };
}

/** The order that the reference has already settled. */
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

interface RefusalOf {
  readonly code: ErrorCode;
  readonly facts: ErrorFacts;
  /** True when the error is a fault of the program. The log then has the stack. */
  readonly isUnexpected: boolean;
}

/** The only place that turns a thrown error into an error code. */
export function refusalOf(error: unknown): RefusalOf {
  if (error instanceof ApiError) return { code: error.code, facts: error.facts, isUnexpected: false };
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
 * The answer to a change that is stored but not yet effective, made from the answer to an effective one:
 *
 *   effective answer      answer to a change that is not yet effective
 *   200 with a body       202 with the same body and `"effective": false`
 *   204 without a body    202 with `{"effective": false}`
 *   201                   201 with the same body: the object exists, and the contract fixes the body of enroll
 *
 * Each of these has the header `X-Effective: false`. The document describes them for each route with `awaitsEffect`.
 */
export function notEffective(reply: Reply): Reply {
  const headers = { ...reply.headers, [EFFECTIVE_HEADER]: "false" };
  if (reply.status === 201) return { ...reply, headers };
  return { ...reply, status: 202, body: { ...(reply.body as object | undefined), effective: false }, headers };
}
