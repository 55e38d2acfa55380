/** The payments of all stations of the owner's organization: as a list, as a file, and as counts. */
import { z } from "zod";
import { formatAmount, parseAmount } from "../../../machines/currency.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import type { FieldError } from "../../../services/bus/field-errors.ts";
import * as messages from "../../../services/bus/messages/payments.ts";
import {
  CSV_TYPE,
  EXPORT_DESCRIPTION,
  type Exported,
  exportedFile,
  exportFormatSchema,
  MINOR_COLUMNS,
} from "../../http/exported-file.ts";
import { ApiError, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreBefore, pageBeforeQuery, pageOnWire, queryId } from "../../http/page.ts";
import { priceSchema } from "../../http/price.ts";
import { backofficeRoute } from "../../http/route.ts";
import {
  amountSchema,
  currencySchema,
  idSchema,
  optionalTimestamp,
  requestMomentSchema,
  timestampSchema,
  toTimestamp,
} from "../../http/shared-schemas.ts";
import { intentStatusSchema, moneyMayHaveMovedSchema, paymentRouteSchema } from "../cashier/intent-json.ts";

export const FRESHNESS =
  "The list is about a second behind the stations. While the audit service is late (`copy_late` at `/readyz`), the list is as old as the audit copy, and so are filters and the export. In a row, a settled payment that the copy has is `succeeded` at once.";

const paymentSchema = z
  .object({
    intent_id: idSchema.meta({ description: "`backoffice_get_intent_timeline` explains the payment." }),
    order_id: idSchema,
    order_display_number: idSchema,
    filial_id: idSchema,
    filial_name: z.string(),
    station_id: idSchema,
    station_name: z.string(),
    sandbox: z.boolean().meta({ description: "Whether the station is for tests." }),
    route: paymentRouteSchema,
    status: intentStatusSchema,
    amount: amountSchema,
    currency: currencySchema,
    cashier_id: idSchema.nullable().meta({
      description: "Who began the collection; null where an operator attributed a provider's payment to the order.",
    }),
    cashier_name: z.string(),
    device_id: idSchema.nullable(),
    device_name: z.string(),
    reference: z.string().meta({
      description:
        "The reference of the transaction. Without a transaction, the reference from the provider or from the newest report. The first 255 characters; the timeline has the whole reference.",
    }),
    transaction_id: idSchema.nullable(),
    money_may_have_moved: moneyMayHaveMovedSchema,
    created_at: timestampSchema,
    ended_at: timestampSchema.nullable(),
  })
  .meta({
    id: "Payment",
    examples: [
      {
        intent_id: 7,
        order_id: 42,
        order_display_number: 12,
        filial_id: 1,
        filial_name: "Old Town",
        station_id: 3,
        station_name: "Counter",
        sandbox: false,
        route: "smart_pos",
        status: "succeeded",
        amount: "25.00",
        currency: "EUR",
        cashier_id: 5,
        cashier_name: "Ana",
        device_id: 9,
        device_name: "Counter terminal",
        reference: "VIRT-000007",
        transaction_id: 11,
        money_may_have_moved: "",
        created_at: "2026-11-20T12:00:00.000Z",
        ended_at: "2026-11-20T12:00:12.000Z",
      },
    ],
  });
export const paymentsSchema = z.object({ payments: z.array(paymentSchema), has_more: hasMoreBefore });

export const moment = (description: string) => requestMomentSchema.optional().meta({ description });
const yesOrNoSchema = z
  .enum(["true", "false"])
  .meta({ id: "YesOrNo", description: "`true` or `false`, as the value of a query parameter." });
export const sandboxQuery = yesOrNoSchema
  .optional()
  .meta({ description: "`true`: only stations for tests, `false`: only the others; all when left out." });
export const searchQuery = z.string().min(1).max(BOUNDS.searchCharacters).optional().meta({
  description:
    "Only payments whose reference begins with this text, in upper or lower case, or whose order has this number.",
});

const filterShape = {
  filial_id: queryId().optional().meta({ description: "Only payments at stations of this filial, by its id." }),
  station_id: queryId().optional().meta({ description: "Only payments at this station, by its id." }),
  cashier_id: queryId().optional().meta({ description: "Only collections that this person began, by the user's id." }),
  route: paymentRouteSchema.optional().meta({ description: "Only payments over this route; all when left out." }),
  status: intentStatusSchema.optional().meta({ description: "Only payments of this status; all when left out." }),
  ended: yesOrNoSchema.optional().meta({
    description: "`false`: only collections under way, `true`: only those that have ended; all when left out.",
  }),
  from: moment("Only payments that were created at this moment or later."),
  to: moment("Only payments that were created before this moment."),
  currency: currencySchema.optional().meta({ description: "Only payments in this currency, by its ISO 4217 code." }),
  min_amount: priceSchema.optional().meta({
    description: "Only payments of at least this amount; `currency` must be given with it.",
  }),
  max_amount: priceSchema.optional().meta({
    description: "Only payments of at most this amount; `currency` must be given with it.",
  }),
  search: searchQuery,
  sandbox: sandboxQuery,
};
const querySchema = z.strictObject({ ...filterShape, ...pageBeforeQuery });
const exportSchema = z.strictObject({ ...filterShape, format: exportFormatSchema });
type Filter = z.infer<ReturnType<typeof z.strictObject<typeof filterShape>>>;

/** Throws `invalid_request` for an amount without its currency, or one that the currency cannot have. */
function filterOf(query: Filter): messages.PaymentsFilter {
  const errors: FieldError[] = [];
  const minor = (name: "min_amount" | "max_amount"): string | undefined => {
    const amount = query[name];
    if (amount === undefined) return undefined;
    const found = query.currency === undefined ? undefined : parseAmount(amount, query.currency);
    if (found === undefined) {
      const detail = query.currency === undefined ? "Give `currency` with it." : "This currency has fewer decimals.";
      errors.push({ pointer: `/${name}`, code: "not_of_currency", detail });
    }
    return found?.toString();
  };
  const filter = {
    filialId: query.filial_id,
    stationId: query.station_id,
    cashierId: query.cashier_id,
    route: query.route,
    status: query.status,
    isOpen: query.ended === undefined ? undefined : query.ended === "false",
    fromMs: query.from === undefined ? undefined : Date.parse(query.from),
    toMs: query.to === undefined ? undefined : Date.parse(query.to),
    currency: query.currency,
    leastMinor: minor("min_amount"),
    mostMinor: minor("max_amount"),
    search: query.search,
    sandbox: query.sandbox === undefined ? undefined : query.sandbox === "true",
  };
  if (errors.length > 0) throw new ApiError("invalid_request", { errors });
  return filter;
}

export const paymentJson = (payment: messages.Payment): z.infer<typeof paymentSchema> => ({
  intent_id: payment.intentId,
  order_id: payment.orderId,
  order_display_number: payment.orderDisplayNumber,
  filial_id: payment.filialId,
  filial_name: payment.filialName,
  station_id: payment.stationId,
  station_name: payment.stationName,
  sandbox: payment.sandbox,
  route: payment.route,
  status: payment.status,
  amount: formatAmount(payment.amountMinor, payment.currency),
  currency: payment.currency,
  cashier_id: payment.cashierId,
  cashier_name: payment.cashierName,
  device_id: payment.deviceId,
  device_name: payment.deviceName,
  reference: payment.reference,
  transaction_id: payment.transactionId,
  money_may_have_moved: payment.moneyMayHaveMoved,
  created_at: toTimestamp(payment.createdAtMs),
  ended_at: optionalTimestamp(payment.endedAtMs),
});

const listPayments: SessionHandler<undefined, z.infer<typeof querySchema>> = async ({ caller, deps, query }) => {
  const { before_id: beforeId, limit } = query;
  const request = { caller, ...filterOf(query), beforeId, limit };
  const found = await deps.bus.call(messages.listPayments, request);
  const { page, hasMore } = pageOnWire(found.payments.map(paymentJson), found.hasMore);
  return ok({ payments: page, has_more: hasMore });
};

const exportPayments: SessionHandler<undefined, z.infer<typeof exportSchema>> = ({ caller, deps, query }) => {
  const filter = filterOf(query);
  async function* pages(): AsyncIterable<readonly Exported[]> {
    let beforeId: number | undefined;
    for (;;) {
      const request = { caller, ...filter, beforeId, limit: BOUNDS.listed };
      const { payments, hasMore } = await deps.bus.call(messages.listPayments, request);
      yield payments.map((payment) => ({
        json: paymentJson(payment),
        minor: { amount_minor: payment.amountMinor },
      }));
      beforeId = payments.at(-1)?.intentId;
      if (!hasMore || beforeId === undefined) return;
    }
  }
  const columns = { columns: Object.keys(paymentSchema.shape), minor: ["amount_minor"] };
  return exportedFile({ name: "payments", format: query.format, columns, pages: pages() });
};

export const paymentRoutes = [
  backofficeRoute({
    method: "GET",
    path: "/api/backoffice/v1/payments/",
    operation: "listPayments",
    summary: "List the payments of all stations",
    description: `One entry for each payment intent. ${FRESHNESS}`,
    query: querySchema,
    replies: { 200: { description: "Newest first, by the time of creation.", schema: paymentsSchema } },
    handler: listPayments,
  }),
  backofficeRoute({
    method: "GET",
    path: "/api/backoffice/v1/exports/payments/",
    operation: "exportPayments",
    summary: "Export the payments that match a filter",
    description: `${EXPORT_DESCRIPTION} ${MINOR_COLUMNS} ${FRESHNESS}`,
    query: exportSchema,
    replies: { 200: { description: "The file.", schema: z.array(paymentSchema), textType: CSV_TYPE } },
    handler: exportPayments,
  }),
];
