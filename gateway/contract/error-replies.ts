/** Which refusals an operation can answer with: its own and those that come with its caller, its body and the faults. */
import { z } from "zod";
import { BLOCKED_REASONS } from "../../machines/standing.ts";
import type { Route } from "../route.ts";
import { ERRORS, type ErrorCode } from "./errors.ts";

/**
 * The error answers of all operations. Operations that can refuse with the same codes share one component, so that the
 * document stays readable and a generated client gets one type for them.
 */
export class ErrorReplies {
  readonly #names = new Map<string, string>();
  readonly #counts = new Map<number, number>();
  /** The components by name. */
  readonly components: Record<string, object> = {};

  /** The error answers of one operation, by status. */
  of(route: Route): Record<string, { readonly $ref: string }> {
    const byStatus = Map.groupBy(errorCodesOf(route), (code) => ERRORS[code].status);
    const sorted = [...byStatus].toSorted(([a], [b]) => a - b);
    return Object.fromEntries(
      sorted.map(([status, codes]) => [
        String(status),
        { $ref: `#/components/responses/${this.#name(status, codes)}` },
      ]),
    );
  }

  #name(status: number, codes: readonly ErrorCode[]): string {
    const sorted = codes.toSorted();
    const key = sorted.join();
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const count = (this.#counts.get(status) ?? 0) + 1;
    this.#counts.set(status, count);
    const name = `Error${status}${String.fromCharCode(64 + count)}`;
    this.#names.set(key, name);
    this.components[name] = errorReply(status, codes);
    return name;
  }
}

/** All codes of an operation, each once. */
export function errorCodesOf(route: Route): readonly ErrorCode[] {
  const codes = new Set<ErrorCode>(route.errors);
  const add = (...more: readonly ErrorCode[]): void => more.forEach((code) => codes.add(code));
  if (route.path.includes("{")) add("path_not_found");
  if (route.body !== undefined) {
    add("invalid_request", "body_too_large", "unsupported_media_type", "request_timeout");
  }
  if (route.rawBody === true) add("body_too_large", "request_timeout");
  if (route.query !== undefined) add("invalid_request");
  // An idempotency key can be too long.
  if (route.headers !== undefined && "Idempotency-Key" in route.headers.shape) add("invalid_request");
  switch (route.who.kind) {
    case "device":
      add("credential_missing", "credential_invalid", "scope_denied", "throttled", "replica_stale");
      if (route.who.blocked !== "answered") add(...BLOCKED_REASONS);
      break;
    case "consumer":
      add("credential_missing", "credential_invalid", "consumer_suspended", "throttled");
      break;
    case "session":
      add("session_missing", "session_invalid", "permission_denied", "replica_stale");
      if (route.method !== "GET") add("csrf_refused");
      break;
    case "platform":
      add("path_not_found", "platform_key_missing", "platform_key_invalid", "throttled");
      break;
    case "anyone":
      if (route.who.cookie === true) add("csrf_refused");
  }
  if (route.tag !== "service") add("unavailable", "busy", "internal_error");
  return [...codes];
}

function errorReply(status: number, codes: readonly ErrorCode[]): object {
  const first = codes[0] as ErrorCode;
  return {
    description: codes.map((code) => `\`${code}\`: ${ERRORS[code].sentence}`).join("\n\n"),
    headers: headersOf(status, codes),
    content: {
      "application/json": {
        // The shared body, with only the codes that can come here.
        schema: {
          allOf: [
            { $ref: "#/components/schemas/Error" },
            { type: "object", properties: { code: { type: "string", enum: [...codes] } } },
          ],
        },
        example: {
          code: first,
          detail: ERRORS[first].sentence,
          request_id: "3q2-7wAB-1k",
          ...(first === "intent_not_actionable" || first === "task_not_actionable" ? { status: "expired" } : {}),
          ...(first === "money_may_have_moved" ? { earlier_intent_id: 42 } : {}),
          ...(first === "invalid_request"
            ? {
                errors: [
                  {
                    pointer: "/outcome",
                    detail: "Must be one of reported_success, reported_declined, reported_cancelled, reported_unknown.",
                  },
                ],
              }
            : {}),
        },
      },
    },
  };
}

const text = (description: string): z.ZodString => z.string().meta({ description });

function headersOf(status: number, codes: readonly ErrorCode[]): z.ZodObject {
  return z.object({
    "X-Request-Id": text("The client's own `X-Request-Id`, or a new one."),
    ...(status === 401
      ? {
          "WWW-Authenticate": text(
            "`Bearer`, with `error` when the credential is wrong; `Provider-Signature` for a callback.",
          ),
        }
      : {}),
    ...(status === 429 || status === 503 ? { "Retry-After": text("Seconds until a retry makes sense.") } : {}),
    ...(codes.includes("throttled")
      ? {
          "RateLimit-Policy": text("The throttle: `q` requests in `w` seconds.").optional(),
          RateLimit: text("What is left of it: `r` requests now, and the next one in `t` seconds.").optional(),
        }
      : {}),
  });
}
