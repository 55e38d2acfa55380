/** The cashier's API on the wire: stations, lease, routes and orders (design §5). Intents are in `intent.ts`. */
import { z } from "zod";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { blockedReasonSchema, livenessSchema } from "../api/backoffice/devices.ts";
import { stationStatusSchema } from "../api/backoffice/stations.ts";
import { leaseLossSchema, orderStatusSchema, paymentRouteSchema, withdrawalReasonSchema } from "../http/enums.ts";
import { hasMoreAfter, hasMoreBefore, pageAfterQuery, pageBeforeQuery } from "../http/page.ts";
import { amountSchema, currencySchema, idSchema, nameSchema, timestampSchema } from "../http/shared-schemas.ts";
import { UNCLEAR_DESCRIPTION, unclearCollectionSchema } from "./intent.ts";

export const leaseHolderSchema = z
  .object({
    cashier_id: idSchema,
    cashier_name: z.string(),
    acquired_at: timestampSchema,
    expires_at: timestampSchema,
    mine: z.boolean().meta({ description: "Whether the caller holds it." }),
  })
  .meta({ id: "LeaseHolder" });

/** A lease that another person ended: what its holder's screen shows. */
export const lostLeaseSchema = z
  .object({
    cashier_id: idSchema,
    cashier_name: z.string(),
    reason: leaseLossSchema,
    by_name: z.string().meta({ description: "Who ended it." }),
    at: timestampSchema,
    mine: z.boolean().meta({ description: "Whether the caller lost it." }),
  })
  .meta({ id: "LostLease" });

/** Who drives the station's collections. */
export const leaseSchema = z
  .object({
    lease: leaseHolderSchema.nullable().meta({ description: "Null while the station is free." }),
    lost_lease: lostLeaseSchema
      .nullable()
      .meta({ description: "The last lease that another person ended; null once the free station was taken again." }),
  })
  .meta({ id: "Lease" });

const lifetimeSeconds = z
  .int()
  .min(BOUNDS.leaseLifetimeMs.min / 1_000)
  .max(BOUNDS.leaseLifetimeMs.max / 1_000)
  .optional()
  .meta({
    description: "How long the lease lasts without a renewal: half a minute to one hour; 15 minutes when left out.",
    examples: [900],
  });

export const leaseBodySchema = z
  .strictObject({
    lifetime_seconds: lifetimeSeconds,
    take_over_from: idSchema.optional().meta({
      description:
        "Confirms a take-over: the `cashier_id` of the lease that the cashier has seen. The holder is notified over the live view, and a collection under way goes on with the new holder. Refused with `station_leased` when somebody else holds the lease by now; a free station is taken as usual.",
    }),
  })
  .meta({ id: "LeaseRequest", examples: [{ lifetime_seconds: 900 }, { take_over_from: 31 }] });

export const leaseRenewalBodySchema = z
  .strictObject({ lifetime_seconds: lifetimeSeconds })
  .meta({ id: "LeaseRenewal", examples: [{ lifetime_seconds: 900 }] });

export const cashierStationSchema = z
  .object({
    station_id: idSchema,
    filial_id: idSchema,
    name: z.string(),
    currency: currencySchema,
    status: stationStatusSchema,
    sandbox: z.boolean().meta({
      description:
        "Whether it is of the sandbox organization, for trying things out: its QR provider is one of mode `test`, never `live`, and every other station takes one of mode `live`.",
    }),
    blocked_reason: blockedReasonSchema.meta({ description: "Why the station is blocked now; empty when it is not." }),
    lease: leaseHolderSchema.nullable(),
    active_intent_id: idSchema.nullable(),
  })
  .meta({ id: "CashierStation" });

export const cashierStationsSchema = z.object({ stations: z.array(cashierStationSchema), has_more: hasMoreAfter });
export const cashierStationsQuerySchema = z.strictObject(pageAfterQuery);

export const routeOfferSchema = z
  .object({
    route: paymentRouteSchema,
    offered: z.boolean(),
    reason: withdrawalReasonSchema.nullable().meta({
      description:
        "Why it is not offered; null when it is. Where several companions are there, `smart_pos` names the first of: one that went offline; one that is online and blocked; one that was never online; one that is offline and blocked; one that is not enrolled; one without the capabilities.",
    }),
    since: timestampSchema.nullable().meta({ description: "Since when the reason holds, where that is known." }),
  })
  .meta({ id: "RouteOffer" });

export const READINESS = ["ready", "not_polling", "offline"] as const;

/** A device of the companion's kind, whether or not a smart POS collection can be handed to it now. */
export const companionSchema = z
  .object({
    device_id: idSchema,
    name: z.string(),
    liveness: livenessSchema,
    readiness: z.enum(READINESS).meta({
      id: "CompanionReadiness",
      description:
        "`not_polling`: it is heard, but has not asked for its assignment for 35 seconds outside of a collection; a collection handed to it would wait. `ready` does not look at what blocks it.",
    }),
    last_polled_at: timestampSchema
      .nullable()
      .meta({ description: "When it last asked for its assignment, noted every 10 seconds; null when never." }),
    blocked_reason: blockedReasonSchema,
    offered: z.boolean().meta({ description: "Whether a smart POS collection can be handed to it now." }),
    reason: withdrawalReasonSchema.nullable().meta({ description: "Why none can be handed to it; null when one can." }),
  })
  .meta({ id: "Companion" });

export const routesSchema = z.object({ routes: z.array(routeOfferSchema), companions: z.array(companionSchema) }).meta({
  id: "RoutesOffered",
  examples: [
    {
      routes: [
        { route: "smart_pos", offered: false, reason: "device_offline", since: "2026-11-20T12:00:00.000Z" },
        { route: "dynamic_qr", offered: false, reason: "provider_not_configured", since: null },
        { route: "attested_terminal", offered: true, reason: null, since: null },
        { route: "cash", offered: true, reason: null, since: null },
      ],
      companions: [
        {
          device_id: 42,
          name: "Companion",
          liveness: { online: false, last_seen_at: "2026-11-20T11:59:35.000Z", since: "2026-11-20T12:00:00.000Z" },
          readiness: "offline",
          last_polled_at: "2026-11-20T11:59:34.000Z",
          blocked_reason: "",
          offered: false,
          reason: "device_offline",
        },
      ],
    },
  ],
});

/** A price as the cashier types it: no sign, at most two decimals, and no more than the currency has. */
const priceSchema = z
  .string()
  .regex(/^\d{1,10}(?:\.\d{1,2})?$/, "Must be an amount such as 12.50.")
  .meta({
    format: "decimal",
    description: "A price without a sign, with two decimals at most, such as 12.50.",
    examples: ["12.50"],
  });

export const orderLinesBodySchema = z
  .strictObject({
    lines: z
      .array(
        z.strictObject({
          name: nameSchema.meta({ examples: ["Soup of the day"] }),
          quantity: z
            .int()
            .min(1)
            .max(BOUNDS.lineQuantity)
            .meta({ examples: [2] }),
          unit_amount: priceSchema,
        }),
      )
      .max(BOUNDS.orderLines),
  })
  .meta({
    id: "OrderLines",
    examples: [{ lines: [{ name: "Soup of the day", quantity: 2, unit_amount: "12.50" }] }],
  });

export const transactionSchema = z
  .object({
    transaction_id: idSchema,
    intent_id: idSchema,
    route: paymentRouteSchema,
    amount: amountSchema,
    currency: currencySchema,
    reference: z.string(),
    settled_at: timestampSchema,
  })
  .meta({ id: "Transaction" });

/** Order truth: every amount that a device ever shows comes from here. */
export const orderSchema = z
  .object({
    order_id: idSchema,
    order_display_number: idSchema,
    station_id: idSchema,
    status: orderStatusSchema,
    revision: idSchema.meta({ description: "Grows with each change." }),
    currency: currencySchema,
    total: amountSchema,
    lines: z.array(
      z.object({ name: z.string(), quantity: z.int().min(1), unit_amount: amountSchema, line_amount: amountSchema }),
    ),
    transaction: transactionSchema.nullable().meta({ description: "The one sale that paid the order." }),
    unclear_collections: z.array(unclearCollectionSchema).meta({ description: UNCLEAR_DESCRIPTION }),
    opened_at: timestampSchema,
  })
  .meta({
    id: "Order",
    examples: [
      {
        order_id: 1200,
        order_display_number: 17,
        station_id: 1,
        status: "open",
        revision: 2,
        currency: "EUR",
        total: "25.00",
        lines: [{ name: "Soup of the day", quantity: 2, unit_amount: "12.50", line_amount: "25.00" }],
        transaction: null,
        unclear_collections: [],
        opened_at: "2026-11-20T12:00:00.000Z",
      },
    ],
  });

export const ordersSchema = z.object({ orders: z.array(orderSchema), has_more: hasMoreBefore });

export const ordersQuerySchema = z.strictObject({
  status: orderStatusSchema.optional(),
  ...pageBeforeQuery,
});
