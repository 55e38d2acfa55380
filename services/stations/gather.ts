/** What a command needs beside the state: order truth for a new intent, and an intent that the state has dropped. */
import type { NatsConnection } from "nats";
import type { PaymentIntent } from "../../machines/payment-intent.ts";
import type { StationCommand } from "../../machines/station/command.ts";
import { ABOUT_OLD_INTENTS, type StepInput } from "../../machines/station/outcome.ts";
import { findIntent, type StationState } from "../../machines/station/state.ts";
import { findEndedIntent, prepareIntent } from "../bus/messages/intents.ts";
import type { StationResponse } from "../bus/messages/station-commands.ts";
import { call, type ReplyOf } from "../bus/operation.ts";
import { RefusedError } from "../bus/refusals.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { HostCommand } from "./work.ts";

export type Gathered =
  | ({ readonly command: StationCommand } & Pick<StepInput, "recalled" | "recalledOrder">)
  /** The answer is known without a step. */
  | { readonly answer: Omit<StationResponse, "sequence"> };

/**
 * Everything that a step of `command` needs beside the state. Most commands need nothing; the others need the settlement
 * service alone. Throws `UnavailableError` or `RefusedError` when it does not answer.
 */
export async function gather(
  nc: NatsConnection,
  stationId: number,
  state: StationState,
  commandId: string,
  command: HostCommand,
): Promise<Gathered> {
  if (command.type === "intent_create") {
    const { orderId, ...rest } = command;
    const prepared = await prepare(nc, state, RANDOM_ID.test(commandId) ? { orderId } : { orderId, commandId });
    if ("refusal" in prepared) return { answer: { reply: { ok: false, code: prepared.refusal }, intent: null } };
    const { intentId, order, ended } = prepared;
    const create = { ...rest, intentId, order };
    return ended === null ? { command: create } : { command: create, recalled: asIntent(ended) };
  }
  const intentId = droppedIntentOf(state, command);
  return intentId === undefined ? { command } : { command, ...(await recallIntent(nc, { stationId, intentId })) };
}

/** How an intent ended that the station's state has dropped, and the status of its order. Empty if the station never had it. */
export async function recallIntent(
  nc: NatsConnection,
  key: { readonly stationId: number; readonly intentId: number },
): Promise<Pick<StepInput, "recalled" | "recalledOrder">> {
  const { intent, orderStatus } = await call(nc, findEndedIntent, key, STATION_LIMITS.gatherMs);
  return intent === null ? {} : { recalled: asIntent(intent), recalledOrder: orderStatus ?? undefined };
}

/** A host has committed it; the schema checks the members that decisions need. */
function asIntent(ended: NonNullable<ReplyOf<typeof findEndedIntent>["intent"]>): PaymentIntent {
  return ended as unknown as PaymentIntent;
}

const ABOUT_OLD: ReadonlySet<string> = new Set(ABOUT_OLD_INTENTS);

/** The intent that a command names when the state no longer has it. */
function droppedIntentOf(state: StationState, command: HostCommand): number | undefined {
  if (!("intentId" in command) || !ABOUT_OLD.has(command.type)) return undefined;
  return findIntent(state, command.intentId) === undefined ? command.intentId : undefined;
}

/**
 * Each creation sends the newest ended intent along, so that the settlement service stores each ended intent before the state
 * drops it. A creation can expire an intent after that, and then its own intent ends. So the next creation sends both.
 */
async function prepare(
  nc: NatsConnection,
  { stationId, ended: [ended, before] }: StationState,
  creation: { readonly orderId: number; readonly commandId?: string },
): Promise<ReplyOf<typeof prepareIntent> | { readonly refusal: "order_unknown" | "idempotency_key_reused" }> {
  // The creation of `ended` has sent the one before, unless that one expired in the same step.
  const isSent = ended === undefined || before === undefined || (before.endedAtMs ?? 0) < ended.createdAtMs;
  const request = {
    stationId,
    ...creation,
    ...(ended === undefined ? {} : { ended: { ...ended } }),
    ...(isSent ? {} : { endedBefore: { ...before } }),
  };
  return await call(nc, prepareIntent, request, STATION_LIMITS.gatherMs).catch((error: unknown) => {
    if (!(error instanceof RefusedError)) throw error;
    const { code } = error.refusal;
    // The settlement service refuses so for an order that does not exist or belongs to another station.
    if (code === "not_found") return { refusal: "order_unknown" as const };
    if (code === "idempotency_key_reused") return { refusal: code };
    throw error;
  });
}

/** A command id without its sender's key ends in a fresh UUID: it is repeated within seconds or never. */
const RANDOM_ID = /^[a-z_]+:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
