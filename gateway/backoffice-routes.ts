/** The rows of the owner's API about leases and the audit log (design §5). `gateway/routes.ts` joins them into the one table. */
import { leaseSchema } from "./contract/cashier.ts";
import {
  registryEventsSchema,
  stationEventsQuerySchema,
  stationEventsSchema,
  timelineSchema,
} from "./contract/timeline.ts";
import { getOwnTimeline, listOwnEvents, listOwnStationEvents } from "./handlers/backoffice/audit-trail.ts";
import { breakOwnStationLease, getOwnStationLease } from "./handlers/backoffice/station-lease.ts";
import { idempotencyHeaderSchema } from "./http/command-id.ts";
import { pageOfTrailQuery } from "./http/page.ts";
import { type Route, route, session } from "./http/route.ts";

const root = "/api/backoffice/v1";
const station = `${root}/stations/{station_id}` as const;
const who = session("organization.manage");
const tag = "backoffice";

export const backofficeRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: `${station}/lease/`,
    operation: "getStationLease",
    tag,
    summary: "See who drives the station",
    description: "As the cashiers see it.",
    who,
    replies: { 200: { description: "The lease, and the last one that another person ended.", schema: leaseSchema } },
    errors: ["not_found"],
    handler: getOwnStationLease,
  }),
  route({
    method: "DELETE",
    path: `${station}/lease/`,
    operation: "breakStationLease",
    tag,
    summary: "Free the station",
    description:
      "Ends the lease of the cashier who drives the station. The live view notifies them, and they may take the station again; suspend them to prevent that. A collection under way goes on, and the next cashier attests or cancels it. The station's events name the owner and the cashier. A free station answers alike. A repetition under the same `Idempotency-Key` ends no later lease and shows the lease as it is now.",
    who,
    headers: idempotencyHeaderSchema,
    replies: { 200: { description: "The lease after this.", schema: leaseSchema } },
    errors: ["not_found"],
    handler: breakOwnStationLease,
  }),
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
