/** The errors of each operation: those of its row, and those of its caller, its body and faults. */
import { z } from "zod";
import { BLOCKED_REASONS } from "../../../machines/standing.ts";
import { ERRORS, type ErrorCode } from "../errors.ts";
import { type Route, refusesOtherQueries } from "../route.ts";

/**
 * Names of the sets of codes that many operations share. Another set with more than one code gets its name from its operation
 * and status, so that no name changes when a new operation is added.
 */
const SHARED_NAMES: Readonly<Record<string, readonly ErrorCode[]>> = {
  CredentialRefused: ["credential_missing", "credential_invalid"],
  SessionRefused: ["session_missing", "session_invalid"],
  PlatformKeyRefused: ["platform_key_missing", "platform_key_invalid"],
  PermissionOrOriginRefused: ["permission_denied", "csrf_refused"],
  DeviceRefused: ["scope_denied", ...BLOCKED_REASONS],
  PathOrResourceNotFound: ["path_not_found", "not_found"],
  BusyOrUnavailable: ["busy", "unavailable"],
  BusyUnavailableOrStale: ["busy", "unavailable", "replica_stale"],
  BusyUnavailableOrStorageLow: ["busy", "unavailable", "storage_low"],
  BusyUnavailableStaleOrStorageLow: ["busy", "unavailable", "replica_stale", "storage_low"],
};
const keyOf = (codes: readonly ErrorCode[]): string => codes.toSorted().join();
const SHARED_NAME_BY_CODES: ReadonlyMap<string, string> = new Map(
  Object.entries(SHARED_NAMES).map(([name, codes]) => [keyOf(codes), name]),
);

/** `device_frozen` becomes `DeviceFrozen`. */
const pascalCase = (name: string): string =>
  name.replaceAll(/(?:^|_)(\w)/g, (_match, letter: string) => letter.toUpperCase());

/** The error answers of all operations, as components of the document. */
export class ErrorReplies {
  /** The components by name. */
  readonly components: Record<string, object> = {};

  /** The error answers of one operation, by status. */
  of(route: Route): Record<string, { readonly $ref: string }> {
    const byStatus = Map.groupBy(errorCodesOf(route), (code) => ERRORS[code].status);
    const sorted = [...byStatus].toSorted(([a], [b]) => a - b);
    return Object.fromEntries(
      sorted.map(([status, codes]) => {
        const name = componentName(route.operationId, status, codes);
        this.components[name] ??= errorReply(status, codes);
        return [String(status), { $ref: `#/components/responses/${name}` }];
      }),
    );
  }
}

function componentName(operationId: string, status: number, codes: readonly ErrorCode[]): string {
  const [only] = codes;
  if (codes.length === 1 && only !== undefined) return pascalCase(only);
  return SHARED_NAME_BY_CODES.get(keyOf(codes)) ?? `${pascalCase(operationId)}Error${status}`;
}

/** The operations that answer `storage_low` while the disk has too little space (`services/bus/disk-gate.ts`). */
export const WAITING_OPERATIONS: ReadonlySet<string> = new Set([
  // When the free space is below the reserve.
  "platform_create_organization",
  "backoffice_create_filial",
  "backoffice_create_catalogue_item",
  "backoffice_create_station",
  "backoffice_register_device",
  "backoffice_issue_enrollment_code",
  "payments_device_enroll",
  "backoffice_create_user",
  "backoffice_seed_sandbox",
  "backoffice_start_conformance_run",
  "backoffice_create_provider_config",
  "backoffice_create_robotics_consumer",
  "backoffice_offer_serving_task",
  "backoffice_register_webhook_endpoint",
  "backoffice_test_webhook_endpoint",
  "backoffice_resend_webhook_delivery",
  "robotics_redeliver_webhook",
  // Only when the disk is full.
  "cashier_open_order",
  "cashier_create_intent",
]);

/** All codes of an operation, each once. */
export function errorCodesOf(route: Route): readonly ErrorCode[] {
  const codes = new Set<ErrorCode>(route.errors ?? []);
  const add = (...more: readonly ErrorCode[]): void => more.forEach((code) => codes.add(code));
  if (route.path.includes("{")) add("path_not_found");
  if (route.body !== undefined) {
    add("invalid_request", "length_required", "body_too_large", "unsupported_media_type", "request_timeout");
  }
  if (route.rawBody === true || route.streamsBody === true) add("length_required", "body_too_large", "request_timeout");
  if (route.upgrades === true) add("websocket_version_unsupported");
  if (refusesOtherQueries(route)) add("invalid_request");
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
  // The health checks alone need no slot.
  if (route.needsNoSlot !== true) add("unavailable", "busy", "internal_error");
  if (WAITING_OPERATIONS.has(route.operationId)) add("storage_low");
  return [...codes];
}

function errorReply(status: number, codes: readonly ErrorCode[]): object {
  return {
    description: codes.map((code) => `\`${code}\`: ${ERRORS[code].sentence}`).join("\n\n"),
    headers: headersOf(status, codes),
    content: {
      "application/json": {
        schema: { $ref: "#/components/schemas/ApiError" },
        examples: Object.fromEntries(codes.map((code) => [code, { value: exampleOf(code) }])),
      },
    },
    "x-error-codes": codes,
  };
}

/** The additional fields of some codes, for examples. */
const EXAMPLE_FIELDS: Partial<Record<ErrorCode, object>> = {
  intent_not_actionable: { status: "expired" },
  task_not_actionable: { status: "expired" },
  money_may_have_moved: { reason: "handoff_presented", earlier_intent_id: 42, reason_number: 1_790_000_000_000 },
  reference_already_used: {
    status: "created",
    earlier_order: {
      order_id: 41,
      order_display_number: 11,
      station_name: "Counter 2",
      amount: "19.00",
      currency: "EUR",
      settled_at: "2026-11-20T11:52:00.000Z",
    },
  },
  invalid_request: { errors: [{ pointer: "/name", code: "missing", detail: "Must not be empty." }] },
};

function exampleOf(code: ErrorCode): object {
  return { code, detail: ERRORS[code].sentence, request_id: "3q2-7wAB-1k", ...EXAMPLE_FIELDS[code] };
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
