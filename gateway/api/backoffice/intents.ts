/** The active collections of the owner's organization. */
import { z } from "zod";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { backofficeRoute } from "../../http/route.ts";
import { intentJson, intentSchema } from "../cashier/intent-json.ts";
import {
  stationNameJson,
  stationNameMembers,
  stationPage,
  stationPageMembers,
  stationPageQuerySchema,
} from "./station-page.ts";

export const activeIntentsSchema = z.object({
  active_intents: z.array(z.object({ ...stationNameMembers, intent: intentSchema }).meta({ id: "StationIntent" })),
  ...stationPageMembers,
});

const listActiveIntents: SessionHandler<undefined, z.infer<typeof stationPageQuerySchema>> = async (context) => {
  const { deps } = context;
  const { entries: active_intents, ...page } = await stationPage(context, (state) => {
    const { intent } = state;
    if (intent === null) return undefined;
    const facts = { station: state, switches: deps.switches(), nowMs: deps.nowMs() };
    return { ...stationNameJson(state), intent: intentJson(intent, facts) };
  });
  return ok({ active_intents, ...page } satisfies z.infer<typeof activeIntentsSchema>);
};

export const backofficeIntentRoutes = [
  backofficeRoute({
    method: "GET",
    path: "/api/backoffice/v1/active-intents/",
    operation: "listActiveIntents",
    summary: "See what is being collected",
    description:
      "The active collection of each station, with its reports. `backoffice_get_intent_timeline` explains a collection that has ended.",
    query: stationPageQuerySchema,
    replies: { 200: { description: "By station.", schema: activeIntentsSchema } },
    handler: listActiveIntents,
  }),
];
