/** The current state of the owner's organization, and the results of a day. */
import { z } from "zod";
import { ROUTES } from "../../../machines/payment-intent.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import * as messages from "../../../services/bus/messages/payments.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { backofficeRoute } from "../../http/route.ts";
import { requestDateSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { paymentRouteSchema } from "../cashier/intent-json.ts";
import { sandboxQuery } from "./payments.ts";

const count = z.int().min(0);

export const overviewSchema = z
  .object({
    now: z.object({
      open_collections: count,
      stations: count.meta({ description: "Stations that are not closed and have at least one commit." }),
      leased_stations: count.meta({ description: "Stations that a cashier drives." }),
      devices_online: count,
      devices_offline: count.meta({ description: "Devices in use that send no heartbeats." }),
      open_issues: count.meta({ description: "Issues that are open or assigned." }),
    }),
    day: z.iso.date(),
    time_zone: z.string(),
    routes: z
      .array(
        z.object({
          route: paymentRouteSchema,
          median_seconds: z.number().nullable().meta({
            description: "From the creation to the success, over the whole day; null where none has succeeded.",
          }),
          hours: z
            .array(
              z.object({
                hour: z.int().min(0).max(BOUNDS.hourOfDay),
                collections: count.meta({ description: "Collections that began in this hour and have ended." }),
                succeeded: count,
                median_seconds: z
                  .number()
                  .nullable()
                  .meta({ description: "From the creation to the success; null where none has succeeded." }),
              }),
            )
            .meta({ description: "Only hours with a collection." }),
        }),
      )
      .meta({ description: "Each route of a payment. The success rate is `succeeded` divided by `collections`." }),
  })
  .meta({
    id: "Overview",
    examples: [
      {
        now: {
          open_collections: 2,
          stations: 6,
          leased_stations: 4,
          devices_online: 7,
          devices_offline: 1,
          open_issues: 0,
        },
        day: "2026-11-20",
        time_zone: "Europe/Berlin",
        routes: [
          {
            route: "cash",
            median_seconds: 8.4,
            hours: [{ hour: 12, collections: 40, succeeded: 39, median_seconds: 8.4 }],
          },
        ],
      },
    ],
  });

const querySchema = z.strictObject({
  day: requestDateSchema
    .optional()
    .meta({ description: "The day of the series, in the time zone; today when left out." }),
  time_zone: z
    .string()
    .max(BOUNDS.timeZoneCharacters)
    .default("UTC")
    .meta({
      override: { default: "UTC" },
      description: "The time zone in which the hours are counted, as an IANA name and no offset.",
      examples: ["Europe/Berlin"],
    }),
  sandbox: sandboxQuery,
});

/** The date in a time zone. For an unknown time zone the date does not matter, because the service answers with an error. */
function dateAt(ms: number, timeZone: string): string {
  try {
    return new Intl.DateTimeFormat("en-CA", { timeZone, dateStyle: "short" }).format(ms);
  } catch {
    return toTimestamp(ms).slice(0, 10);
  }
}

const MS_A_SECOND = 1_000;
const seconds = (ms: number | null): number | null => (ms === null ? null : Math.round(ms) / MS_A_SECOND);

const getOverview: SessionHandler<undefined, z.infer<typeof querySchema>> = async ({ caller, deps, query }) => {
  const { time_zone: timeZone, day = dateAt(deps.nowMs(), timeZone) } = query;
  const sandbox = query.sandbox === undefined ? undefined : query.sandbox === "true";
  const { hours, routes, ...now } = await deps.bus.call(messages.getOverview, { caller, day, timeZone, sandbox });
  return ok({
    now: {
      open_collections: now.openCollections,
      stations: now.stations,
      leased_stations: now.leasedStations,
      devices_online: now.devicesOnline,
      devices_offline: now.devicesOffline,
      open_issues: now.openIssues,
    },
    day,
    time_zone: timeZone,
    routes: ROUTES.map((name) => ({
      route: name,
      median_seconds: seconds(routes.find(({ route }) => route === name)?.medianMs ?? null),
      hours: hours
        .filter((each) => each.route === name)
        .map(({ hour, collections, succeeded, medianMs }) => ({
          hour,
          collections,
          succeeded,
          median_seconds: seconds(medianMs),
        })),
    })),
  } satisfies z.infer<typeof overviewSchema>);
};

export const overviewRoutes = [
  backofficeRoute({
    method: "GET",
    path: "/api/backoffice/v1/overview/",
    operation: "getOverview",
    summary: "See the current state, and the results of a day",
    description:
      "Counts of this moment over all stations, and the collections of one day by route and hour. Both are about a second behind the stations.",
    query: querySchema,
    replies: { 200: { description: "The counts and the series.", schema: overviewSchema } },
    handler: getOverview,
  }),
];
