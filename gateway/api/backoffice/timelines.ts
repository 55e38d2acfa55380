/** The timeline of one payment, for complaints: each step in a sentence, and whether money moved. */
import { z } from "zod";
import { getIntentTimeline as getTimeline, type Timeline } from "../../../services/bus/messages/timelines.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { backofficeRoute } from "../../http/route.ts";
import { actorJson, idSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { intentStatusSchema } from "../cashier/intent-json.ts";
import { actorSchema, eventDataJson, eventDataSchema } from "./events.ts";

const moneyMovedSchema = z
  .enum(["no", "yes", "maybe"])
  .meta({ id: "MoneyMoved", description: "`maybe`: only evidence shows that money moved." });
export const timelineSchema = z
  .object({
    intent_id: idSchema,
    station_id: idSchema,
    status: intentStatusSchema,
    summary: z.string().meta({ description: "The whole payment in a few sentences." }),
    money_moved: moneyMovedSchema,
    entries: z
      .array(
        z.object({
          at: timestampSchema,
          type: z.string(),
          actor: actorSchema,
          sentence: z.string(),
          money_moved: moneyMovedSchema,
          data: eventDataSchema,
        }),
      )
      .meta({
        description:
          "The creation is first; the other entries follow in the order of time. They are the steps of the payment; kill switches that were turned on or off during the payment (for example `platform_frozen`); provider payments that an operator attributed (`provider_issue_attributed`; the timeline of the payment `attribution_intent_id` has the further steps); and issues that an operator closed (`provider_issue_closed`, with the operator and the reason). A kill switch that was already on is listed directly after the creation, with its own time.",
      }),
  })
  .meta({ id: "PaymentTimeline" });

function timelineJson({ intentId, stationId, status, summary, moneyMoved, entries }: Timeline) {
  return {
    intent_id: intentId,
    station_id: stationId,
    status,
    summary,
    money_moved: moneyMoved,
    entries: entries.map((entry) => ({
      at: toTimestamp(entry.atMs),
      type: entry.type,
      actor: actorJson(entry.actor),
      sentence: entry.sentence,
      money_moved: entry.moneyMoved,
      data: eventDataJson(entry.data),
    })),
  };
}

/** Error: `not_found` for another organization's payment. */
const getIntentTimeline: SessionHandler = async (context) => {
  const { caller, deps } = context;
  return ok(timelineJson(await deps.bus.call(getTimeline, { caller, intentId: context.id("intent_id") })));
};

export const timelineRoutes = [
  backofficeRoute({
    method: "GET",
    path: "/api/backoffice/v1/intents/{intent_id}/timeline/",
    operation: "getIntentTimeline",
    summary: "Explain one payment",
    description:
      "For a complaint: each step in a sentence, and whether a guest may have paid although the order is open.",
    replies: { 200: { description: "What happened, who did it, and whether money moved.", schema: timelineSchema } },
    errors: ["not_found"],
    handler: getIntentTimeline,
  }),
];
