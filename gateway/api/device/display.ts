/** What a customer display shows (contract, "GET display"). */
import { z } from "zod";
import { conditionalHeaderSchema, etagHeaderSchema, unchanged } from "../../http/conditional.ts";
import { device, poll } from "../../http/route.ts";
import { amountSchema, currencySchema, timestampSchema } from "../../http/shared-schemas.ts";
import { INTENT_STATUSES } from "../cashier/intent-json.ts";

const shownIntentStatusSchema = z
  .enum(["", ...INTENT_STATUSES])
  .meta({ id: "ShownIntentStatus", description: "As `IntentStatus`; empty while no intent is shown." });
const displayScreenSchema = z.enum(["idle", "total", "qr", "paid"]).meta({ id: "DisplayScreen" });

const displayStateSchema = z
  .object({
    state: displayScreenSchema,
    order_display_number: z.int().min(0).meta({ description: "0 in `idle`." }),
    amount: amountSchema.meta({ description: "`0.00` in `idle`." }),
    currency: currencySchema,
    qr_payload: z
      .string()
      .meta({ description: "A value only in `qr` and only for devices with `qr_dynamic_present`." }),
    intent_status: shownIntentStatusSchema,
    server_time: timestampSchema,
  })
  .meta({
    id: "DisplayState",
    examples: [
      {
        state: "total",
        order_display_number: 12,
        amount: "25.00",
        currency: "EUR",
        qr_payload: "",
        intent_status: "presented",
        server_time: "2026-11-20T12:00:00.000Z",
      },
    ],
  });

export const displayRoutes = [
  poll({
    method: "GET",
    path: "/api/payments/v1/devices/display/",
    operation: "getDisplay",
    operationId: "payments_device_display",
    tag: "device",
    summary: "Read what the customer display shows",
    description:
      "Poll around every two seconds with the last ETag. A collection under way comes first (`total`, or `qr`), then a payment just made (`paid`, for 8 seconds or until an order is opened or changed), then the open order (`total` with an empty `intent_status`), else `idle`.",
    who: device("display:read"),
    headers: conditionalHeaderSchema,
    replies: {
      200: { description: "What to show, without changes.", schema: displayStateSchema, headers: etagHeaderSchema },
      304: unchanged,
    },
    poll: "display",
  }),
];
