/** The rows of the owner's API about leases and the audit log (design §5). `gateway/routes.ts` joins them into the one table. */
import {
  registryEventsSchema,
  stationEventsQuerySchema,
  stationEventsSchema,
  timelineSchema,
} from "./contract/timeline.ts";
import { getOwnTimeline, listOwnEvents, listOwnStationEvents } from "./handlers/backoffice/audit-trail.ts";
import { pageOfTrailQuery } from "./http/page.ts";
import { type Route, route, session } from "./http/route.ts";

const root = "/api/backoffice/v1";
const station = `${root}/stations/{station_id}` as const;
const who = session("organization.manage");
const tag = "backoffice";

export const backofficeRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: `${station}/events/`,
    operation: "listStationEvents",
    tag,
    summary: "Read what a station committed",
    description:
      "Every change of the station in order, by the version of its commit. Who follows it asks again after the last event's version.",
    who,
    query: stationEventsQuerySchema,
    replies: { 200: { description: "In order.", schema: stationEventsSchema } },
    errors: ["not_found"],
    handler: listOwnStationEvents,
  }),
  route({
    method: "GET",
    path: `${root}/intents/{intent_id}/timeline/`,
    operation: "getIntentTimeline",
    tag,
    summary: "Explain one payment",
    description:
      "For a complaint: each step in a sentence, and whether a guest may have paid although the order is open.",
    who,
    replies: { 200: { description: "What happened, who did it, and whether money moved.", schema: timelineSchema } },
    errors: ["not_found"],
    handler: getOwnTimeline,
  }),
  route({
    method: "GET",
    path: `${root}/events/`,
    operation: "listEvents",
    tag,
    summary: "Read who changed what",
    description:
      "The audit trail of places, devices, enrollment codes, people, sessions and kill switches, those of the platform as well. Newest first; who follows it asks with the last event's id as `since_id`, and misses none.",
    who,
    query: pageOfTrailQuery,
    replies: { 200: { description: "By id.", schema: registryEventsSchema } },
    errors: [],
    handler: listOwnEvents,
  }),
];
