/** Callbacks of payment providers. The gateway forwards their bytes; the providers service checks and records them. */
import { z } from "zod";
import { repeatable } from "../operation.ts";

const id = z.int().positive();

/**
 * How many refused callbacks from one address to one config get the error of their cause; further ones are
 * `throttled`. The service counts only refused ones, after it has checked the signature. So callbacks with a wrong
 * signature cannot block valid ones from the same address.
 */
export const CALLBACK_REFUSAL_RATE = { refusals: 20, windowMs: 60_000 } as const;
/** Why a callback was refused: `status` 401, 429 and 413. */
export const CALLBACK_REFUSALS = ["signature_invalid", "throttled", "body_too_large"] as const;

/** One callback as received. The service decodes nothing before it has verified the signature over the raw body. */
export const receiveCallback = repeatable(
  "providers.receiveCallback",
  z.object({
    configId: id,
    /** Lower-case names; only `SIGNATURE_HEADER` is read. */
    headers: z.record(z.string(), z.string()),
    bodyBase64: z.string(),
    /** The client's address, for the record of a refused callback. */
    address: z.string(),
  }),
  /**
   * For a recorded callback: 200 and the answer's body, byte for byte. A duplicate always gets the same answer. For a
   * refused callback: 401, 413 or 429, and a body with the `code`, from which the gateway makes its error.
   */
  z.object({ status: z.int(), body: z.string(), retryAfterMs: z.number().optional() }),
);

/**
 * A callback with a body that is too large. The gateway has not read the body, so no signature is checked. The service
 * answers, records and counts it as refused (413, or 429 when there are many).
 */
export const refuseLargeCallback = repeatable(
  "providers.refuseLargeCallback",
  receiveCallback.request.pick({ configId: true, address: true }),
  receiveCallback.reply,
);
