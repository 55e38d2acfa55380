/** What pages say about each error, in English: one sentence, and what the person does next. */
import type { ErrorTexts } from "./failures.ts";

const AGAIN = "Try again in a few seconds; nothing was done.";
const ASK_OWNER = "Ask the owner.";
const REPORT = "Reload the page. If it happens again, give the request number to the person who runs the service.";
const CHECK = "Check what is shown now before you do anything else; it may have been done.";

export const en: ErrorTexts = {
  offline: {
    sentence: "The service cannot be reached.",
    next: "Check the network. The page goes on by itself when the connection is back.",
  },
  no_answer: { sentence: "No answer came in time.", next: CHECK },
  answer_unreadable: { sentence: "The answer could not be read.", next: REPORT },
  path_not_found: { sentence: "This does not exist here.", next: "Go back, or reload the page." },
  trailing_slash_missing: { sentence: "This address does not exist.", next: REPORT },
  method_not_allowed: { sentence: "This cannot be done here.", next: REPORT },
  length_required: { sentence: "The request was not complete.", next: REPORT },
  body_too_large: { sentence: "This is too large.", next: "Send less at once." },
  unsupported_media_type: { sentence: "Files of this type are not accepted.", next: "Choose another file." },
  websocket_version_unsupported: {
    sentence: "This browser is too old for live updates.",
    next: "Use a newer browser.",
  },
  request_timeout: { sentence: "The request took too long to arrive.", next: "Check the network and try again." },
  credential_missing: { sentence: "This device has not signed in.", next: "Pair it again." },
  credential_invalid: {
    sentence: "This device is not known any more.",
    next: "Ask the owner for a new code and pair it again.",
  },
  consumer_suspended: { sentence: "This program is suspended.", next: ASK_OWNER },
  scope_denied: { sentence: "A device of this kind cannot do this.", next: "Use a device of the right kind." },
  session_missing: { sentence: "You are not signed in.", next: "Sign in." },
  session_invalid: {
    sentence: "Your session has ended.",
    next: "Sign in again. A collection under way continues meanwhile.",
  },
  csrf_refused: { sentence: "This page was opened from another site.", next: "Open it from its own address." },
  platform_key_missing: {
    sentence: "This needs the platform key.",
    next: "Send it, or ask the person who runs the service.",
  },
  platform_key_invalid: { sentence: "The platform key is wrong.", next: "Check the key." },
  signature_invalid: { sentence: "The signature is not valid.", next: "Check the secret and the clock of the sender." },
  throttled: { sentence: "These are too many requests at once.", next: "Wait a moment, then try again." },
  replica_stale: { sentence: "The service does not know the newest state at the moment.", next: AGAIN },
  internal_error: { sentence: "Something went wrong in the service.", next: CHECK },
  invalid_request: { sentence: "Something that was entered is not valid.", next: "Correct the marked fields." },
  not_found: { sentence: "This does not exist any more.", next: "Go back and reload the list." },
  conflict: { sentence: "This cannot be done in the present state.", next: "Reload and check the state." },
  already_exists: { sentence: "Another person has this e-mail address.", next: "Use another address." },
  permission_denied: { sentence: "You do not have the permission for this.", next: ASK_OWNER },
  login_failed: {
    sentence: "E-mail address or password is wrong.",
    next: "Type both again. The owner can give you a new password.",
  },
  login_throttled: {
    sentence: "There were too many attempts to sign in.",
    next: "Wait, or sign in on a machine where you have signed in before.",
  },
  enrollment_code_invalid: { sentence: "This code is not valid.", next: "Check it, or ask the owner for a new one." },
  already_created: {
    sentence: "An earlier click has made this already.",
    next: "What its answer showed once is lost. Close this, and make a new secret in the list, or reset it there.",
  },
  idempotency_key_reused: {
    sentence: "This was already sent with other content.",
    next: "Reload the page and try again.",
  },
  robotics_paused: { sentence: "Robotics is paused at this filial.", next: "Wait until it is resumed." },
  task_expired: { sentence: "The time of this offer is over.", next: "Make a new offer." },
  task_not_actionable: { sentence: "The task has changed meanwhile.", next: "Reload and check its status." },
  webhook_target_refused: {
    sentence: "Webhooks may not go to this address.",
    next: "Use a public address with https.",
  },
  endpoint_unavailable: {
    sentence: "The endpoint of this delivery is not in use.",
    next: "Activate the endpoint first.",
  },
  delivery_lapsed: { sentence: "This offer has expired and is not sent any more.", next: "Make a new offer." },
  storage_low: {
    sentence: "The disk of the service is almost full; nothing was done.",
    next: "Inform the owner. Collections under way can be completed.",
  },
  busy: { sentence: "The service has too much to do at the moment.", next: AGAIN },
  unavailable: { sentence: "A part of the service does not answer.", next: CHECK },
  station_unknown: { sentence: "This station does not exist.", next: "Choose another station." },
  device_unknown: { sentence: "This device does not exist.", next: "Reload the list." },
  device_limit_reached: {
    sentence: "The station has as many devices as it can have.",
    next: "Revoke a device that is not needed.",
  },
  station_leased: {
    sentence: "Another cashier drives this station.",
    next: "Ask them to release it, or take it over. A collection under way continues with you.",
  },
  session_ended: { sentence: "Your session has ended.", next: "Sign in again." },
  lease_required: { sentence: "You do not drive this station any more.", next: "Take the station, then try again." },
  route_not_offered: {
    sentence: "This way to pay is not available now.",
    next: "Choose another one, or put right what the reason names.",
  },
  collection_active: {
    sentence: "A collection is already under way at this station.",
    next: "Finish it first: settle it if the guest has paid, cancel it if not.",
  },
  amount_not_collectable: { sentence: "There is nothing to collect on this order.", next: "Add a line." },
  money_may_have_moved: {
    sentence: "An earlier collection of this order may have moved money.",
    next: "Find out whether the guest has paid already, then confirm.",
  },
  handoff_not_assigned: {
    sentence: "This collection is not for this device.",
    next: "Use the device that it was handed to.",
  },
  intent_unknown: { sentence: "This collection does not exist.", next: "Reload the page." },
  intent_not_actionable: {
    sentence: "This collection has ended.",
    next: "If it succeeded, nothing is left to do. If not, find out from the slip whether the guest has paid before you collect again.",
  },
  evidence_required: {
    sentence: "There is no evidence of a payment yet.",
    next: "Wait for the device or the provider. Cancel only when you know that the guest has not paid.",
  },
  reference_required: { sentence: "The reference on the terminal's slip is missing.", next: "Type it from the slip." },
  settlement_in_progress: { sentence: "The payment is being recorded.", next: "Wait a moment." },
  order_changed: {
    sentence: "The order is no longer what the guest was shown; nothing was settled.",
    next: "Cancel the collection, clear up what the guest has paid, and collect the new amount.",
  },
  order_already_paid: {
    sentence: "The order is already paid; nothing was settled again.",
    next: "Collect nothing more. If the guest has paid twice, pay one back.",
  },
  order_voided: {
    sentence: "The order was voided; nothing was settled.",
    next: "Cancel the collection. If the guest has paid, pay it back.",
  },
  order_unknown: {
    sentence: "This order does not exist here; nothing was settled.",
    next: "Find it at its own station. If the guest has paid, inform the owner.",
  },
  money_already_used: {
    sentence: "This payment has already paid something else; nothing was settled.",
    next: "Cancel, and ask the owner what it has paid.",
  },
  reference_already_used: {
    sentence: "This reference has already settled another order; nothing was settled.",
    next: "Compare the slip with that order. If one payment covers both, confirm it.",
  },
  device_suspended: { sentence: "The owner has suspended this device.", next: ASK_OWNER },
  device_frozen: { sentence: "This device is frozen.", next: ASK_OWNER },
  station_suspended: {
    sentence: "The owner has suspended this station.",
    next: "Collect at another station, or ask the owner.",
  },
  station_closed: { sentence: "This station is closed.", next: "Collect at another station." },
  station_frozen: { sentence: "This station is frozen; cash still collects.", next: ASK_OWNER },
  organization_frozen: { sentence: "All stations are frozen; cash still collects.", next: ASK_OWNER },
  platform_frozen: { sentence: "The platform is frozen; cash still collects.", next: "Wait, or collect in cash." },
};
