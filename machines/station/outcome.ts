/** The input and the outcome of a station's steps, and the functions that make a reply. */
import type { Actor } from "../actor.ts";
import { isEnded, type PaymentIntent } from "../payment-intent.ts";
import type { MachineSettings } from "../settings.ts";
import { STATE_LIMITS } from "../settings.ts";
import type { KillSwitches } from "../standing.ts";
import type { StationCommand } from "./command.ts";
import type { StationEvent } from "./event.ts";
import type { Refusal, RefusalCode, StationReply } from "./reply.ts";
import { findIntent, type OrderStatus, type StationState, type StoredReply } from "./state.ts";

export type Command<T extends StationCommand["type"]> = Extract<StationCommand, { type: T }>;

/** The complete input of a step, besides the state. */
export interface StepInput {
  readonly command: StationCommand;
  readonly commandId: string;
  readonly actor: Actor;
  /** The id of the HTTP request that caused the command, for logs. */
  readonly requestId?: string | undefined;
  /** The time of the bus, as the host knows it, and never before the station's newest commit. */
  readonly atMs: number;
  readonly switches: KillSwitches;
  readonly settings: MachineSettings;
  /**
   * The command's intent from the payment seam's database, when it has left the bounded state. With it the station still
   * recognises a repetition, and answers a late report as late and keeps it as evidence. The intent's status cannot change.
   */
  readonly recalled?: PaymentIntent | undefined;
  /** The current status of that intent's order, from the payment seam's database: the station may have forgotten it. */
  readonly recalledOrder?: OrderStatus | undefined;
  /**
   * The confirmation that the providers service recorded before the deadline of the active intent. Only an overdue QR needs
   * it (`needsConfirmationCheck`). `unknown` leaves such an intent unchanged.
   */
  readonly recordedConfirmation: RecordedConfirmation;
}

/** A provider's confirmation that was verified and recorded before the deadline. `none`: there is certainly none. */
export type RecordedConfirmation = "none" | "unknown" | { readonly providerReference: string };

/** The result of the step of one command. Without `state`, nothing has changed. */
export interface Outcome {
  readonly state?: StationState;
  readonly events?: readonly StationEvent[];
  readonly reply: StationReply;
}

export const ACCEPTED: StationReply = { ok: true, type: "accepted" };

export function refuse(code: RefusalCode, more?: Omit<Refusal, "ok" | "code">): Outcome {
  return { reply: { ok: false, code, ...more } };
}

/** The commands that need their intent even after it has left the state. */
export const ABOUT_OLD_INTENTS = [
  "intent_report",
  "intent_attest",
  "intent_cancel",
  "provider_confirm",
  "provider_money_differs",
  "provider_cleared",
] as const satisfies readonly StationCommand["type"][];

/** The intent of a command: the active one, a recently ended one, or the recalled one. */
export function namedIntent(state: StationState, intentId: number, input: StepInput): PaymentIntent | undefined {
  const known = findIntent(state, intentId);
  if (known !== undefined) return known;
  const { recalled } = input;
  return recalled?.intentId === intentId && isEnded(recalled.status) ? recalled : undefined;
}

/** The stored replies with this one added. At the limit the oldest is dropped. */
export function keepReply(state: StationState, stored: StoredReply): StationState["replies"] {
  return [...state.replies, stored].slice(-STATE_LIMITS.replies);
}
