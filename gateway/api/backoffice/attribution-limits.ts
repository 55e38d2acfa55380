/** The largest payment that one person may attribute to an order without a second person. */
import { z } from "zod";
import { formatExactAmount, parseAmount } from "../../../machines/currency.ts";
import * as bus from "../../../services/bus/messages/attribution-limits.ts";
import { ApiError, ok, type SessionHandler } from "../../http/handler-context.ts";
import { backofficeRoute } from "../../http/route.ts";
import {
  activeCurrencySchema,
  currencySchema,
  exactAmountSchema,
  idSchema,
  reasonSchema,
  timestampSchema,
  toTimestamp,
} from "../../http/shared-schemas.ts";

const limitSchema = z
  .object({
    currency: currencySchema,
    alone_up_to: exactAmountSchema.meta({
      description: "One person attributes up to this amount; above it another person confirms.",
    }),
    set: z
      .object({ by: idSchema, by_name: z.string(), at: timestampSchema, reason: z.string() })
      .nullable()
      .meta({ description: "Null for the default: 100 units of the currency, or 10,000 if it has no decimals." }),
  })
  .meta({
    id: "AttributionLimit",
    examples: [
      {
        currency: "EUR",
        alone_up_to: "250.00",
        set: { by: 30, by_name: "Ana", at: "2026-11-20T12:00:00.000Z", reason: "Tables of ten." },
      },
    ],
  });
const limitsSchema = z.object({ attribution_limits: z.array(limitSchema) });
const setBodySchema = z
  .strictObject({
    currency: activeCurrencySchema,
    alone_up_to: z
      .string()
      .regex(/^\d{1,10}(?:\.\d{1,3})?$/)
      .nullable()
      .meta({ description: "With 0, each attribution needs two people. Null restores the default." }),
    reason: reasonSchema,
  })
  .meta({
    id: "SetAttributionLimit",
    examples: [{ currency: "EUR", alone_up_to: "250.00", reason: "Tables of ten." }],
  });

const limitJson = ({ currency, aloneUpToMinor, set }: bus.AttributionLimit): z.infer<typeof limitSchema> => ({
  currency,
  alone_up_to: formatExactAmount(BigInt(aloneUpToMinor), currency),
  set: set === null ? null : { by: set.byId, by_name: set.byName, at: toTimestamp(set.atMs), reason: set.reason },
});

const listAttributionLimits: SessionHandler = async ({ caller, deps }) => {
  const { limits } = await deps.bus.call(bus.listAttributionLimits, { caller });
  return ok({ attribution_limits: limits.map(limitJson) });
};

/** Throws `invalid_request` for an amount that its currency cannot have. */
const setAttributionLimit: SessionHandler<z.infer<typeof setBodySchema>> = async ({ caller, deps, body }) => {
  const { currency, alone_up_to: text, reason } = body;
  const minor = text === null ? null : parseAmount(text, currency);
  if (minor === undefined) {
    const detail = "Must be an amount of `currency`.";
    throw new ApiError("invalid_request", { errors: [{ pointer: "/alone_up_to", code: "not_of_currency", detail }] });
  }
  const request = { caller, currency, aloneUpToMinor: minor === null ? null : minor.toString(), reason };
  return ok(limitJson((await deps.bus.call(bus.setAttributionLimit, request)).limit));
};

const path = "/api/backoffice/v1/attribution-limits/" as const;

export const attributionLimitRoutes = [
  backofficeRoute({
    method: "GET",
    path,
    operation: "listAttributionLimits",
    summary: "Read how much one person may attribute alone",
    description:
      "The highest amount that one operator may attribute to an order without a second person. The list has the currencies of the organization's stations, and the currencies for which a person has set a limit.",
    replies: { 200: { description: "By currency.", schema: limitsSchema } },
    handler: listAttributionLimits,
  }),
  backofficeRoute({
    method: "POST",
    path,
    operation: "setAttributionLimit",
    summary: "Set how much one person may attribute alone",
    description:
      "Sets the limit of one currency. It applies from the next attribution on; attributions that already wait for a second person still wait. The audit log `/api/backoffice/v1/provider-events/` has each change.",
    body: setBodySchema,
    replies: { 200: { description: "The limit as it is now.", schema: limitSchema } },
    handler: setAttributionLimit,
  }),
];
