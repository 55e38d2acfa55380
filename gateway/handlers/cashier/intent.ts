/** Reading intents: the station's recent ones, and any one by id. */
import type { PaymentIntent } from "../../../machines/payment-intent.ts";
import { findIntent } from "../../../machines/station/state.ts";
import { findEndedIntent } from "../../../services/bus/messages/intents.ts";
import { ok, Refusal, type SessionHandler } from "../../http/handler-context.ts";
import { ownStation } from "../../http/own-station.ts";
import { intentWire } from "./intent-wire.ts";

/** The active intent first, then the recently ended ones: as many as the station's bounded state holds. */
export const listIntents: SessionHandler = async (context) => {
  const station = await ownStation(context);
  const { deps } = context;
  const facts = { station, switches: deps.switches(), nowMs: deps.nowMs() };
  const intents = station.intent === null ? station.ended : [station.intent, ...station.ended];
  return ok({ intents: intents.map((intent) => intentWire(intent, facts)) });
};

/** An intent that has left the state is answered from the audit copy or the payment seam's records. Refusal: `intent_unknown`. */
export const getIntent: SessionHandler = async (context) => {
  const station = await ownStation(context);
  const { deps } = context;
  const facts = { station, switches: deps.switches(), nowMs: deps.nowMs() };
  const intentId = context.id("intent_id");
  const recent = findIntent(station, intentId);
  if (recent !== undefined) return ok(intentWire(recent, facts));
  const { intent } = await deps.bus.call(findEndedIntent, { stationId: station.stationId, intentId });
  if (intent === null) throw new Refusal("intent_unknown");
  return ok(intentWire(intent as unknown as PaymentIntent, facts));
};
