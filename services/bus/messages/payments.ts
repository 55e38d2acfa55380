/**
 * The payments of an organization at all its stations, and their counts. They come from the audit copy, which is a
 * moment behind the stations. Amounts are minor units as strings of digits. All operations need `organization.manage`;
 * for the payments of one station `payments.collect` is enough.
 */
import { z } from "zod";
import { INTENT_STATES, ROUTES, UNCLEAR_REASONS } from "../../../machines/payment-intent.ts";
import { BOUNDS } from "../bounds.ts";
import { repeatable } from "../operation.ts";
import { pageBefore } from "../page.ts";
import { amountMinorSchema as amountMinor } from "./amount.ts";
import { callerSchema as caller } from "./caller.ts";
import { dateSchema } from "./date.ts";

const id = z.int().positive();
const status = z.enum(INTENT_STATES).exclude(["settling"]);

export const paymentSchema = z.object({
  intentId: id,
  orderId: id,
  orderDisplayNumber: id,
  filialId: id,
  filialName: z.string(),
  stationId: id,
  stationName: z.string(),
  sandbox: z.boolean(),
  route: z.enum(ROUTES),
  /** `succeeded` when there is a transaction, even when the station has not committed the success. */
  status,
  amountMinor,
  currency: z.string(),
  /** Who began the collection; null for an operator's attribution. */
  cashierId: id.nullable(),
  cashierName: z.string(),
  deviceId: id.nullable(),
  deviceName: z.string(),
  /** The first characters of the reference. */
  reference: z.string(),
  transactionId: id.nullable(),
  moneyMayHaveMoved: z.enum(["", ...UNCLEAR_REASONS]),
  createdAtMs: z.number(),
  endedAtMs: z.number().nullable(),
});
export type Payment = z.infer<typeof paymentSchema>;

const filter = {
  filialId: id.optional(),
  stationId: id.optional(),
  cashierId: id.optional(),
  route: z.enum(ROUTES).optional(),
  status: status.optional(),
  /** Whether the payment has not ended. */
  isOpen: z.boolean().optional(),
  sandbox: z.boolean().optional(),
  currency: z.string().optional(),
  /** In `currency`. */
  leastMinor: amountMinor.optional(),
  mostMinor: amountMinor.optional(),
  /** Created at this moment or later. */
  fromMs: z.number().optional(),
  /** Created before this moment. */
  toMs: z.number().optional(),
  /** The beginning of a reference, or an order's display number. */
  search: z.string().min(1).max(BOUNDS.searchCharacters).optional(),
};
const filterSchema = z.object(filter);
export type PaymentsFilter = z.infer<typeof filterSchema>;

/** Newest first, by the time of creation. */
export const listPayments = repeatable(
  "audit.listPayments",
  z.object({ caller, ...filter, ...pageBefore }),
  z.object({ payments: z.array(paymentSchema), hasMore: z.boolean() }),
);

const hourSchema = z.object({
  /** The hour of the day in the time zone. */
  hour: z.int().min(0).max(BOUNDS.hourOfDay),
  route: z.enum(ROUTES),
  /** Ended collections that began in this hour. */
  collections: z.int(),
  succeeded: z.int(),
  /** The median time from creation to success; null when no collection has succeeded. */
  medianMs: z.number().nullable(),
});

const routeSchema = z.object({
  route: z.enum(ROUTES),
  /** The median of the whole day. */
  medianMs: z.number().nullable(),
});

/**
 * The current counts, and a day's collections by hour and route. Refuses an unknown time zone with `invalid_request`.
 */
export const getOverview = repeatable(
  "audit.getOverview",
  z.object({
    caller,
    day: dateSchema,
    timeZone: z.string().max(BOUNDS.timeZoneCharacters),
    sandbox: z.boolean().optional(),
  }),
  z.object({
    stations: z.int(),
    leasedStations: z.int(),
    devicesOnline: z.int(),
    devicesOffline: z.int(),
    openCollections: z.int(),
    openIssues: z.int(),
    hours: z.array(hourSchema),
    /** Only routes with a collection on this day. */
    routes: z.array(routeSchema),
  }),
);
