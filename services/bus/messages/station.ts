/** The command to a station's actor and its answer. Both sides are ours and typed by the machines; values are checked at the gateway. */
import type { Actor } from "../../../machines/actor.ts";
import type { PaymentIntent } from "../../../machines/payment-intent.ts";
import type { StationCommand } from "../../../machines/station/command.ts";
import type { StationReply } from "../../../machines/station/reply.ts";
import type { FieldError } from "../refusals.ts";

/**
 * What a gateway or the relay asks for. An intent's creation names the order only: the host asks the settlement service
 * for the order's truth, so that no amount can come from outside (I1). Of the payment seam's answers the relay may repeat
 * a success, to a station whose log has lost it.
 */
export type RequestedCommand =
  | Exclude<
      StationCommand,
      { type: "intent_create" | "qr_ready" | "end_told" | "settlement_refused" | "tick" | "rule_out" }
    >
  | (Omit<Extract<StationCommand, { type: "intent_create" }>, "intentId" | "order"> & { readonly orderId: number });

export interface StationRequest {
  /**
   * The same id gets the same answer. A device report's id is built from device, intent and client_idempotency_key; a
   * cashier's from user and Idempotency-Key; without a key it is random. At most 200 characters.
   */
  readonly commandId: string;
  readonly actor: Actor;
  readonly command: RequestedCommand;
}

export interface StationResponse {
  readonly reply: StationReply;
  /** The intent that the reply speaks of, as it was then. */
  readonly intent: PaymentIntent | null;
  /** The stream sequence of the station's newest commit when the reply was given; a replica at or past it shows the effect. */
  readonly sequence: number;
}

/**
 * Why no actor took the command. Nothing was committed for `busy` and `invalid_request`, which repeating does not change;
 * for `unavailable` it is unknown.
 */
export type StationFailure =
  | { readonly failure: "busy" | "storage_low" | "unavailable"; readonly retryAfterMs: number }
  | { readonly failure: "invalid_request"; readonly errors: readonly FieldError[] };
