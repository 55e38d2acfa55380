/** What a command needs beside the state: the order's truth for a new intent, and what the state no longer remembers. */
import type { NatsConnection } from "nats";
import type { PaymentIntent } from "../../machines/payment-intent.ts";
import type { StationCommand } from "../../machines/station/command.ts";
import { forgottenThrough, KEPT_BY_INTENT, replyMayBeForgotten } from "../../machines/station/reply.ts";
import { findIntent, type StationState } from "../../machines/station/state.ts";
import { prepareIntent } from "../bus/messages/settlement.ts";
import type { StationResponse } from "../bus/messages/station.ts";
import { call } from "../bus/operation.ts";
import { RefusedError } from "../bus/refusals.ts";
import { recall } from "./history.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { HostCommand } from "./work.ts";

export type Gathered =
  | { readonly command: StationCommand; readonly recalled?: PaymentIntent }
  /** The answer is known without a step. */
  | { readonly answer: Omit<StationResponse, "sequence"> };

/**
 * Everything that a step of `command` needs. Most commands need nothing and nobody is asked. Throws `UnavailableError`
 * or `RefusedError` when a service that has to be asked does not answer.
 */
export async function gather(
  nc: NatsConnection,
  stationId: number,
  { state, version }: { readonly state: StationState; readonly version: number },
  commandId: string,
  command: HostCommand,
): Promise<Gathered> {
  const isForgotten = !isRandom(commandId) && replyMayBeForgotten(state, commandId, command as StationCommand);
  const intentId = unknownIntentOf(state, command);
  const throughVersion = forgottenThrough(state, version, intentId === undefined ? "reply" : "intent");
  const [history, prepared] = await Promise.all([
    isForgotten || intentId !== undefined
      ? recall(nc, { stationId, commandId, throughVersion, ...(intentId === undefined ? {} : { intentId }) })
      : undefined,
    command.type === "intent_create" ? prepare(nc, stationId, command.orderId) : undefined,
  ]);
  if (history?.response !== null && history?.response !== undefined) return { answer: history.response };
  if (command.type !== "intent_create") {
    const intent = history?.intent;
    return intent === null || intent === undefined ? { command } : { command, recalled: intent };
  }
  if (prepared === undefined) return { answer: { reply: { ok: false, code: "order_unknown" }, intent: null } };
  const { orderId: _asked, ...rest } = command;
  return { command: { ...rest, intentId: prepared.intentId, order: prepared.order } };
}

const KEPT: ReadonlySet<string> = new Set(KEPT_BY_INTENT);

/** The intent that a command speaks of when the state no longer has it. */
function unknownIntentOf(state: StationState, command: HostCommand): number | undefined {
  if (!("intentId" in command) || !KEPT.has(command.type)) return undefined;
  return findIntent(state, command.intentId) === undefined ? command.intentId : undefined;
}

/** An order that does not exist, or is another station's, is `not_found` there and `order_unknown` here. */
async function prepare(nc: NatsConnection, stationId: number, orderId: number) {
  return await call(nc, prepareIntent, { stationId, orderId }, STATION_LIMITS.gatherMs).catch((error: unknown) => {
    if (error instanceof RefusedError && error.refusal.code === "not_found") return undefined;
    throw error;
  });
}

/** A command id without a key of its sender ends in a fresh UUID: it is repeated within seconds or never. */
const RANDOM_ID = /^[a-z_]+:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
function isRandom(commandId: string): boolean {
  return RANDOM_ID.test(commandId);
}
