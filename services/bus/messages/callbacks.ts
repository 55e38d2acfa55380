/** Callbacks of payment providers: the gateway passes their bytes on, the providers service checks and records them. */
import { z } from "zod";
import { repeatable } from "../operation.ts";

const id = z.int().positive();

/**
 * How many refused callbacks of one address at one config are answered as refused; more are throttled. The service counts
 * only refused ones, after it has checked the signature: wrong callbacks cannot keep out right ones of the same address.
 */
export const CALLBACK_REFUSAL_RATE = { refusals: 20, windowMs: 60_000 } as const;
/** Why a callback was not taken: `status` 401, 429 and 413. */
export const CALLBACK_REFUSALS = ["signature_invalid", "throttled", "body_too_large"] as const;

/** One callback as it came: nothing is decoded before the signature over the raw body holds. */
export const receiveCallback = repeatable(
  "providers.receiveCallback",
  z.object({
    configId: id,
    /** Lower-case names; only `SIGNATURE_HEADER` is read. */
    headers: z.record(z.string(), z.string()),
    bodyBase64: z.string(),
    /** For the record of a refused signature. */
    address: z.string(),
  }),
  /**
   * A recorded callback: 200 and the body to answer, byte for byte; a duplicate gets the same again, whatever has happened
   * since. A refused one: 401, 413 or 429, and a body with the `code`, which the gateway turns into its error.
   */
  z.object({ status: z.int(), body: z.string(), retryAfterMs: z.number().optional() }),
);

/**
 * A callback whose body is beyond the bound. The gateway has not read it, so its signature is not checked. The service
 * answers, records and counts it as refused (413, or 429 when there are many).
 */
export const refuseLargeCallback = repeatable(
  "providers.refuseLargeCallback",
  receiveCallback.request.pick({ configId: true, address: true }),
  receiveCallback.reply,
);
