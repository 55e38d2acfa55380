/** Callbacks of payment providers. The gateway forwards the bytes unchanged over the bus, and returns the recorded answer. */
import { z } from "zod";
import * as bus from "../../../services/bus/messages/callbacks.ts";
import { parseSignatureHeader, SIGNATURE_HEADER } from "../../../services/bus/signature-header.ts";
import { ApiError, type Context, type Handler, type Reply } from "../../http/handler-context.ts";
import { anyone, rawBodyRoute } from "../../http/route.ts";
import { amountSchema, currencySchema, idSchema } from "../../http/shared-schemas.ts";
import { type BucketRate, CALLBACK_RATE, throttleHeaders } from "../../read-model/throttles.ts";

/** A duplicate of a callback gets the same bytes again, so the answer has no time in it. */
const callbackReplySchema = z
  .object({ received: z.literal(true), callback_id: idSchema })
  .meta({ id: "CallbackReceived" });

/** For the document only: the providers service reads the bytes after it has checked their signature. */
const callbackBodySchema = z
  .looseObject({
    id: z.string().meta({ description: "The event's id; the same event gets the same answer.", examples: ["evt-1"] }),
    type: z.string().meta({
      description:
        "`payment.paid`, `payment.declined`, `payment.cancelled` or `payment.expired`; any other type is recorded and has no effect.",
      examples: ["payment.paid"],
    }),
    data: z.looseObject({
      reference: z
        .string()
        .meta({ description: "The payment's reference: the QR's reference label (tag 62, subtag 05)." }),
      transaction_id: z
        .string()
        .optional()
        .meta({
          description: "The provider's reference of the payment, which never changes; a paid event needs it.",
          examples: ["tx-1"],
        }),
      merchant_id: z
        .string()
        .optional()
        .meta({ description: "The account that got the payment.", examples: ["M-1"] }),
      amount: amountSchema.optional(),
      currency: currencySchema.optional(),
    }),
  })
  .meta({
    id: "ProviderCallback",
    examples: [
      {
        id: "evt-1",
        type: "payment.paid",
        data: {
          reference: "7",
          transaction_id: "tx-1",
          merchant_id: "M-1",
          amount: "25.00",
          currency: "EUR",
        },
      },
    ],
    description: "The body that `emvco_generic` accepts. A signed body of another form is recorded and pays nothing.",
  });

const callbackHeadersSchema = z.object({
  "X-Provider-Signature": z.string().meta({
    description:
      "`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 over `<t>.<raw body>`, keyed with the text of `callback_secret`; the time may differ by five minutes.",
    examples: ["t=1790000000,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd"],
  }),
});

const { refusals: burst, windowMs } = bus.CALLBACK_REFUSAL_RATE;
const REFUSAL_RATE: BucketRate = { intervalMs: windowMs / burst, burst };

const refusedSchema = z.object({ code: z.enum(bus.CALLBACK_REFUSALS) });

/**
 * Does not check the body: the signature covers the raw bytes, and only the providers service has the secrets. The gateway also
 * forwards callbacks that cannot be valid, so that the service records them. When too many of these are under way, the gateway
 * answers with the same error as the service.
 */
const receiveCallback: Handler<Buffer | null> = async (context) => {
  const { deps, address } = context;
  const retryAfterMs = deps.callbackThrottle.take(address, deps.nowMs());
  if (retryAfterMs > 0) {
    throw new ApiError("throttled", { headers: throttleHeaders("callback", CALLBACK_RATE, retryAfterMs) });
  }
  const sender = { configId: context.id("config_id"), address };
  const { body } = context;
  const mayBeRight = body !== null && parseSignatureHeader(context.header(SIGNATURE_HEADER)) !== undefined;
  const release = mayBeRight
    ? await deps.callbackLanes.enter(sender, deps.nowMs())
    : deps.callbackLanes.enterUnsigned(address);
  if (release === undefined) {
    throw new ApiError(mayBeRight ? "busy" : body === null ? "body_too_large" : "signature_invalid");
  }
  try {
    const reply = await forward(context, body);
    if (mayBeRight) deps.callbackLanes.verified(sender, deps.nowMs());
    return reply;
  } finally {
    release();
  }
};

/** `body` is null when it was too large to be read. Throws unless the signature is valid. */
async function forward(context: Context<Buffer | null>, body: Buffer | null): Promise<Reply> {
  const { deps, address } = context;
  const signature = context.header(SIGNATURE_HEADER);
  const from = { configId: context.id("config_id"), address };
  const answer =
    body === null
      ? await deps.bus.call(bus.refuseLargeCallback, from)
      : await deps.bus.call(bus.receiveCallback, {
          ...from,
          headers: signature === "" ? {} : { [SIGNATURE_HEADER]: signature },
          bodyBase64: body.toString("base64"),
        });
  if (answer.status === 200) return { status: answer.status, ready: answer.body };
  const { code } = refusedSchema.parse(JSON.parse(answer.body));
  if (code !== "throttled") throw new ApiError(code);
  const headers = throttleHeaders("callback-refused", REFUSAL_RATE, answer.retryAfterMs ?? windowMs);
  throw new ApiError(code, { headers });
}

export const callbackRoutes = [
  rawBodyRoute({
    method: "POST",
    path: "/api/providers/v1/{config_id}/callback/",
    operation: "receiveCallback",
    tag: "provider",
    summary: "Report the result of a payment",
    description:
      "The header `X-Provider-Signature: t=<unix seconds>,v1=<hex>` carries HMAC-SHA256 over `<t>.<raw body>`. A duplicate gets the same answer again, byte for byte, whatever has happened since. A wrong signature and an unknown config get the same error. The service refuses a body over 16 KiB unread, whatever its signature is; it records and counts the refusal, but not the body. Repeat the request after 429 and 5xx.",
    who: anyone,
    rawBody: true,
    signedBody: callbackBodySchema,
    headers: callbackHeadersSchema,
    replies: {
      200: { description: "The callback is recorded. What it reports may be an issue.", schema: callbackReplySchema },
    },
    errors: ["signature_invalid", "throttled"],
    handler: receiveCallback,
  }),
];
