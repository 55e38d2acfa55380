/** The cashier ends a collection without settling it. */

import { sessionCommandId } from "../../http/command-id.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { cashierActor, ownStation } from "../../http/own-station.ts";
import { spokenOf } from "./intent-reply.ts";
import { decidedIntentWire } from "./intent-wire.ts";

/** Refusals: `settlement_in_progress`, `intent_not_actionable`, `intent_unknown`, `lease_required`, `station_leased`. */
export const cancelIntent: SessionHandler = async (context) => {
  const station = await ownStation(context);
  const { stationId } = station;
  const intentId = context.id("intent_id");
  const response = await context.deps.bus.command(stationId, {
    commandId: sessionCommandId(context, "intent_cancel", intentId),
    actor: cashierActor(context),
    command: { type: "intent_cancel", intentId },
  });
  return ok(decidedIntentWire(spokenOf(response), station, context.deps.nowMs()));
};
