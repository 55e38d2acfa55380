/**
 * The closed list of error codes. One catalogue has each code's HTTP status, sentence, and what a program or a cashier may do
 * next (design §4, "error body"). A missing code does not compile.
 */
import { BUS_REFUSAL_CODES, type BusRefusalCode } from "../../services/bus/refusals.ts";

/** Codes that only the gateway uses. The others come from the services. */
export const HTTP_ERROR_CODES = [
  "path_not_found",
  "trailing_slash_missing",
  "method_not_allowed",
  "length_required",
  "body_too_large",
  "unsupported_media_type",
  "websocket_version_unsupported",
  "request_timeout",
  "credential_missing",
  "credential_invalid",
  "consumer_suspended",
  "scope_denied",
  "session_missing",
  "session_invalid",
  "csrf_refused",
  "platform_key_missing",
  "platform_key_invalid",
  "signature_invalid",
  "throttled",
  "replica_stale",
  "internal_error",
] as const;
type HttpErrorCode = (typeof HTTP_ERROR_CODES)[number];

export const ERROR_CODES = [...HTTP_ERROR_CODES, ...BUS_REFUSAL_CODES] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/**
 * Codes that HTTP never answers. For the first two, HTTP answers `replica_stale`: the bus has lost the station, or the station
 * has just lost the device, whose credential ends. When a session ended during its request, HTTP answers `session_invalid`.
 */
const NOT_OVER_HTTP = [
  "station_unknown",
  "device_unknown",
  "session_ended",
] as const satisfies readonly BusRefusalCode[];
type NotOverHttp = (typeof NOT_OVER_HTTP)[number];

/** The closed list in the document. At least one operation answers each code. */
export const PUBLISHED_ERROR_CODES = ERROR_CODES.filter(
  (code): code is Exclude<ErrorCode, NotOverHttp> => !(NOT_OVER_HTTP as readonly string[]).includes(code),
);

interface ErrorMeaning {
  readonly status: number;
  /** One sentence for a person. It is the body's `detail` unless a service has a more exact one. */
  readonly sentence: string;
  /** Whether a client may repeat the same request unchanged, and the repetition can succeed. */
  readonly retryable: boolean;
  /** Whether a guest may have paid in spite of the error. Then the cashier must find out before the next collection. */
  readonly moneyMayHaveMoved: boolean;
  /** What the cashier must do, for an error that a cashier sees. */
  readonly cashierAction?: string;
}

const no = { retryable: false, moneyMayHaveMoved: false } as const;
const again = { retryable: true, moneyMayHaveMoved: false } as const;
/** For an unknown outcome of a cashier's action. */
const CHECK_FIRST = "Open the collection again before you do anything else; it may have been done.";

const httpErrors: Readonly<Record<HttpErrorCode, ErrorMeaning>> = {
  path_not_found: { status: 404, sentence: "There is nothing at this path.", ...no },
  trailing_slash_missing: { status: 404, sentence: "Paths end in a slash; `detail` names the right path.", ...no },
  method_not_allowed: { status: 405, sentence: "This path does not support this method; see the Allow header.", ...no },
  length_required: {
    status: 411,
    sentence: "Send the body with a Content-Length; chunked bodies are not accepted here.",
    ...no,
  },
  body_too_large: {
    status: 413,
    sentence: "The body is larger than 16 KiB, or than what this operation's description allows.",
    ...no,
  },
  unsupported_media_type: { status: 415, sentence: "The body's content type is not accepted here.", ...no },
  websocket_version_unsupported: {
    status: 426,
    sentence: "Only version 13 of the WebSocket protocol is supported here.",
    ...no,
  },
  request_timeout: { status: 408, sentence: "The body did not arrive in time.", ...again },
  credential_missing: { status: 401, sentence: "Send the credential as a bearer token.", ...no },
  credential_invalid: {
    status: 401,
    sentence: "The credential is unknown or revoked; a device must enroll again, a robotics consumer needs a new one.",
    ...no,
    cashierAction: "Ask the owner for a new enrollment code for this device.",
  },
  consumer_suspended: {
    status: 403,
    sentence:
      "The owner has suspended this robotics consumer; its credential is valid again when the owner activates it.",
    ...no,
  },
  scope_denied: { status: 403, sentence: "A device of this kind may not call this endpoint.", ...no },
  session_missing: { status: 401, sentence: "Log in first.", ...no, cashierAction: "Log in." },
  session_invalid: {
    status: 401,
    sentence: "The session is unknown or has ended; log in again.",
    ...no,
    cashierAction: "Log in again; a collection under way continues meanwhile.",
  },
  csrf_refused: { status: 403, sentence: "A session cookie is only accepted from the service's own pages.", ...no },
  platform_key_missing: { status: 401, sentence: "Send the platform key as a bearer token.", ...no },
  platform_key_invalid: { status: 401, sentence: "The platform key is wrong.", ...no },
  signature_invalid: {
    status: 401,
    sentence: "The signature does not match this callback, or its time differs too much from the service's time.",
    ...no,
  },
  throttled: { status: 429, sentence: "Too many requests; wait as long as Retry-After requests.", ...again },
  replica_stale: {
    status: 503,
    sentence:
      "This gateway or the bus does not have the current state, and the gateway does not answer with old state; try again shortly.",
    ...again,
    cashierAction: "Try again in a few seconds; nothing was done.",
  },
  internal_error: {
    status: 500,
    sentence: "The service failed; find the cause in the log by the request id.",
    retryable: true,
    moneyMayHaveMoved: true,
    cashierAction: CHECK_FIRST,
  },
};

const busErrors: Readonly<Record<BusRefusalCode, ErrorMeaning>> = {
  invalid_request: { status: 400, sentence: "The request is not valid; `errors` names each field.", ...no },
  not_found: { status: 404, sentence: "The resource does not exist here.", ...no },
  conflict: { status: 409, sentence: "The present state of the resource does not permit this.", ...no },
  already_created: {
    status: 409,
    sentence:
      "An earlier request with this idempotency key created it. The secret in that answer cannot be shown again; make a new secret or delete it.",
    ...no,
  },
  // The sentence names e-mail addresses, because no other value must be unique.
  already_exists: { status: 409, sentence: "Another person has this e-mail address; use another address.", ...no },
  permission_denied: {
    status: 403,
    sentence: "You do not have the permission for this.",
    ...no,
    cashierAction: "Ask the owner.",
  },
  login_failed: {
    status: 401,
    sentence: "E-mail address or password is wrong.",
    ...no,
    cashierAction: "Type both again; if you have forgotten the password, the owner can give you a new one.",
  },
  login_throttled: {
    status: 429,
    sentence: "Too many attempts to log in; wait as long as Retry-After requests.",
    ...again,
    cashierAction: "Wait as long as the answer says, or log in where you have logged in before.",
  },
  enrollment_code_invalid: {
    status: 404,
    sentence: "This enrollment code cannot be claimed; ask for a new one.",
    ...no,
    cashierAction: "Ask the owner for a new enrollment code.",
  },
  idempotency_key_reused: { status: 422, sentence: "This idempotency key was used for another request.", ...no },
  robotics_paused: { status: 409, sentence: "Robotics is paused at this filial; wait until it is resumed.", ...no },
  task_expired: { status: 409, sentence: "The offer has expired.", ...no },
  task_not_actionable: {
    status: 409,
    sentence: "The task is in a status in which this cannot be done; `status` names it.",
    ...no,
  },
  webhook_target_refused: {
    status: 422,
    sentence: "Webhooks may not go to this address; it must be HTTPS and public.",
    ...no,
  },
  endpoint_unavailable: {
    status: 409,
    sentence:
      "This delivery's endpoint is disabled or deleted, or it never had one; the owner can activate a disabled one, and any delivery can be read with `since_id`.",
    ...no,
  },
  delivery_lapsed: { status: 409, sentence: "This offer has expired; it is not sent any more.", ...no },
  storage_low: {
    status: 503,
    sentence:
      "The disk is short of space, and this request is not urgent; nothing was done; try again when space is free.",
    ...again,
    cashierAction: "Inform the owner that the disk is full; collections under way can be completed.",
  },
  busy: {
    status: 503,
    sentence: "Too much at once; nothing was done; try again shortly.",
    ...again,
    cashierAction: "Try again in a few seconds; nothing was done.",
  },
  unavailable: {
    status: 503,
    sentence: "A service that this request needs does not answer; repeat the request with the same idempotency key.",
    retryable: true,
    moneyMayHaveMoved: true,
    cashierAction: CHECK_FIRST,
  },
  station_unknown: { status: 404, sentence: "There is no such station here.", ...no },
  device_unknown: { status: 404, sentence: "There is no such device here.", ...no },
  device_limit_reached: { status: 409, sentence: "The station has as many devices as it can have.", ...no },
  station_leased: {
    status: 409,
    sentence: "Another cashier drives this station.",
    ...no,
    cashierAction:
      "Ask the other cashier to release the station, or take it over: send their id as `take_over_from`. A collection under way continues with you.",
  },
  session_ended: { status: 401, sentence: "The session has ended; log in again.", ...no },
  lease_required: {
    status: 409,
    sentence: "Take the station's lease first.",
    ...no,
    cashierAction: "Acquire the station, then try again.",
  },
  route_not_offered: {
    status: 409,
    sentence: "This route is not offered now; `reason` shows why.",
    ...no,
    cashierAction: "Choose another route, or put right what `reason` names, such as a companion that is switched off.",
  },
  collection_active: {
    status: 409,
    sentence: "The station already has a collection under way.",
    ...no,
    cashierAction: "Finish the collection under way first: attest it if the guest has paid, cancel it if not.",
  },
  amount_not_collectable: {
    status: 409,
    sentence: "There is nothing to collect on this order.",
    ...no,
    cashierAction: "Check the order's lines: its total is zero.",
  },
  money_may_have_moved: {
    status: 409,
    sentence:
      "An earlier collection of this order may have moved money; `earlier_intent_id` names it and `reason` gives the reason, where that is still known.",
    retryable: false,
    moneyMayHaveMoved: true,
    cashierAction:
      "Find out whether the guest has paid already; to collect again or to attest anyway, confirm it explicitly.",
  },
  handoff_not_assigned: { status: 404, sentence: "This intent is not assigned to this device.", ...no },
  intent_unknown: { status: 404, sentence: "There is no such intent here.", ...no },
  intent_not_actionable: {
    status: 409,
    sentence: "The intent has ended; `status` shows how.",
    retryable: false,
    moneyMayHaveMoved: true,
    cashierAction:
      "If it has succeeded, the order is paid and nothing is left to do. If it was cancelled or has expired, find out from the guest's slip or the payment application whether the guest has paid before you collect again.",
  },
  evidence_required: {
    status: 409,
    sentence: "There is no evidence of a payment for this intent yet.",
    ...no,
    cashierAction:
      "Wait for the device's report or the provider's confirmation. Cancel only when you know that the guest has not paid.",
  },
  reference_required: {
    status: 409,
    sentence: "An attested terminal needs the reference on its slip.",
    ...no,
    cashierAction: "Type the reference from the terminal's slip.",
  },
  settlement_in_progress: {
    status: 409,
    sentence: "The settlement of this intent is already committed.",
    retryable: true,
    moneyMayHaveMoved: true,
    cashierAction: "Wait a moment and read the intent again.",
  },
  order_changed: {
    status: 409,
    sentence: "The order has changed since it was shown to the guest; nothing was settled.",
    retryable: false,
    moneyMayHaveMoved: true,
    cashierAction:
      "Open the order again. If a collection is under way, cancel it, clear up what the guest has paid, and collect the new amount.",
  },
  order_already_paid: {
    status: 409,
    sentence: "The order is already paid; nothing was settled again.",
    retryable: false,
    moneyMayHaveMoved: true,
    cashierAction:
      "Collect nothing more. Cancel a collection that is under way; if the guest has paid twice, pay one back.",
  },
  order_voided: {
    status: 409,
    sentence: "The order was voided; nothing was settled.",
    retryable: false,
    moneyMayHaveMoved: true,
    cashierAction: "Cancel a collection that is under way; if the guest has paid, pay it back.",
  },
  order_unknown: {
    status: 404,
    sentence: "There is no such order here; nothing was settled.",
    retryable: false,
    moneyMayHaveMoved: true,
    cashierAction: "Find the order at its own station; if the guest has paid on this collection, inform the owner.",
  },
  money_already_used: {
    status: 409,
    sentence: "The provider's payment is already used elsewhere, or is closed as resolved; nothing was settled.",
    retryable: false,
    moneyMayHaveMoved: true,
    cashierAction:
      "Cancel the collection and ask the owner what this money has paid, or how it was dealt with. Collect again only when you know that the guest has not paid this order.",
  },
  reference_already_used: {
    status: 409,
    sentence: "This reference has already settled another order, which `earlier_order` names; nothing was settled.",
    retryable: false,
    moneyMayHaveMoved: true,
    cashierAction:
      "Compare the slip with the earlier order. If it is that order's slip, use this payment's own; if one payment covers both orders, attest again and confirm it explicitly.",
  },
  device_suspended: { status: 403, sentence: "The owner has suspended this device.", ...no },
  device_frozen: { status: 403, sentence: "This device is frozen by a kill switch.", ...no },
  station_suspended: {
    status: 403,
    sentence: "The owner has suspended this station.",
    ...no,
    cashierAction: "Collect at another station, or ask the owner to resume this one.",
  },
  station_closed: {
    status: 403,
    sentence: "This station is closed.",
    ...no,
    cashierAction: "Collect at another station; this one stays closed.",
  },
  station_frozen: { status: 403, sentence: "This station is frozen by a kill switch.", ...no },
  organization_frozen: { status: 403, sentence: "This organization is frozen by a kill switch.", ...no },
  platform_frozen: { status: 403, sentence: "The platform is frozen by a kill switch; cash still collects.", ...no },
};

/** The meaning of each code. Codes and statuses are part of the contract, sentences are not. */
export const ERRORS: Readonly<Record<ErrorCode, ErrorMeaning>> = { ...httpErrors, ...busErrors };
