/**
 * Stations on the real bus whose answers a test sets. By default they settle a confirmation through
 * the real payment seam, as an actor does, and accept everything else. Every command is recorded.
 */
import type { Msg } from "nats";
import type { StationReply } from "../../machines/station/reply.ts";
import type { Bus } from "../../services/bus/connection.ts";
import { moneyKey, moneyName, prepareIntent, settleIntent } from "../../services/bus/messages/intents.ts";
import type { RequestedCommand, StationRequest } from "../../services/bus/messages/station-commands.ts";
import { call } from "../../services/bus/operation.ts";
import { parseStationId } from "../../services/bus/subjects.ts";

export interface ReceivedCommand {
  readonly stationId: number;
  readonly commandId: string;
  readonly actor: StationRequest["actor"];
  readonly command: RequestedCommand;
}

type Answer = StationReply | "silence";
type Answering = Answer | (() => Answer | Promise<Answer>);

export interface ScriptedStations {
  readonly received: ReceivedCommand[];
  /** Stores which order the intent collects, so that the station can settle a confirmation. */
  collect(intent: { readonly intentId: number; readonly orderId: number }): void;
  /** Sets the station's answer to one kind of command about an intent. */
  answer(intentId: number, type: RequestedCommand["type"], answer: Answering): void;
  /** Sets the station's answer to the query whether this order is being collected. */
  answerOrder(orderId: number, answer: StationReply): void;
  /** The commands about an intent, in their order. */
  about(intentId: number): ReceivedCommand[];
  stop(): void;
}

const ACCEPTED: StationReply = { ok: true, type: "accepted" };

/** `isSilent`: the commands are recorded, and the real actor host answers them. */
export function startScriptedStations(bus: Bus, options: { readonly isSilent: boolean }): ScriptedStations {
  const received: ReceivedCommand[] = [];
  const orders = new Map<number, number>();
  const orderAnswers = new Map<number, StationReply>();
  const answers = new Map<string, Answering>();

  const replyTo = async ({ stationId, actor, command }: ReceivedCommand): Promise<Answer> => {
    const intentId = "intentId" in command ? command.intentId : 0;
    if (command.type === "order_inquire") return orderAnswers.get(command.orderId) ?? ACCEPTED;
    const answer = answers.get(`${intentId} ${command.type}`);
    if (answer !== undefined) return typeof answer === "function" ? answer() : answer;
    const orderId = orders.get(intentId);
    if (command.type !== "provider_confirm" || orderId === undefined) return ACCEPTED;
    const { order } = await call(bus.nc, prepareIntent, { stationId, orderId });
    const { amountMinor, currency } = order;
    const reference = command.providerReference;
    const asked = {
      intentId,
      attestationId: `confirm:${intentId}`,
      stationId,
      orderId,
      amountMinor,
      currency,
      reference,
    };
    const settled = await call(bus.nc, settleIntent, {
      ...asked,
      route: "dynamic_qr",
      attestedBy: 0,
      moneyKey: moneyKey({ configId: actor.id, name: moneyName(reference, `intent:${intentId}`) }),
    });
    return settled.settled
      ? { ok: true, type: "intent", intentId, status: "succeeded" }
      : { ok: false, code: settled.code };
  };
  const respond = async (message: Msg): Promise<void> => {
    const { commandId, actor, command } = message.json<StationRequest>();
    const request = { stationId: parseStationId(message.subject), commandId, actor, command };
    received.push(request);
    if (options.isSilent) return;
    const reply = await replyTo(request);
    if (reply !== "silence") message.respond(JSON.stringify({ reply, intent: null, sequence: received.length }));
  };
  const subscription = bus.nc.subscribe("station.cmd.*.*", {
    callback: (error, message) => {
      if (error === null) void respond(message);
    },
  });
  return {
    received,
    collect: ({ intentId, orderId }) => orders.set(intentId, orderId),
    answer: (intentId, type, answer) => answers.set(`${intentId} ${type}`, answer),
    answerOrder: (orderId, answer) => orderAnswers.set(orderId, answer),
    about: (intentId) => received.filter(({ command }) => "intentId" in command && command.intentId === intentId),
    stop: () => subscription.unsubscribe(),
  };
}
