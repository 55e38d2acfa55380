/**
 * A provider's callback: its bytes go over the bus as they came, and the bytes of a recorded answer come back as they are.
 * What was refused is answered in the words of every refusal here.
 */
import { z } from "zod";
import {
  CALLBACK_REFUSAL_RATE,
  CALLBACK_REFUSALS,
  receiveCallback,
  refuseLargeCallback,
} from "../../../services/bus/messages/providers.ts";
import { type Context, type Handler, Refusal, type Reply } from "../../http/handler-context.ts";
import { CALLBACK_RATE } from "../../read-model/throttle/limits.ts";
import { type BucketRate, throttleHeaders } from "../../read-model/throttle/token-bucket.ts";

/** The one header that adapters look at. */
const SIGNATURE_HEADER = "x-provider-signature";

const { refusals: burst, windowMs } = CALLBACK_REFUSAL_RATE;
const REFUSAL_RATE: BucketRate = { intervalMs: windowMs / burst, burst };

const refusedSchema = z.object({ code: z.enum(CALLBACK_REFUSALS) });

/** Nothing is looked at here: the signature is over the raw body, and what it belongs to is the providers service's matter. */
export const takeCallback: Handler<Buffer | null> = async (context) => {
  const { deps, address } = context;
  const retryAfterMs = deps.callbackThrottle.take(address, deps.nowMs());
  if (retryAfterMs > 0) {
    throw new Refusal("throttled", { headers: throttleHeaders("callback", CALLBACK_RATE, retryAfterMs) });
  }
  const release = deps.callbackSlots.tryAcquire(context.id("config_id"));
  if (release === undefined) throw new Refusal("busy");
  try {
    return await forward(context, context.body);
  } finally {
    release();
  }
};

/** Over the bus to the providers service, and its answer back. */
async function forward(context: Context<Buffer | null>, body: Buffer | null): Promise<Reply> {
  const { deps, address } = context;
  const signature = context.header(SIGNATURE_HEADER);
  const from = { configId: context.id("config_id"), address };
  const answer =
    body === null
      ? await deps.bus.call(refuseLargeCallback, from)
      : await deps.bus.call(receiveCallback, {
          ...from,
          headers: signature === "" ? {} : { [SIGNATURE_HEADER]: signature },
          bodyBase64: body.toString("base64"),
        });
  if (answer.status === 200) return { status: answer.status, ready: answer.body };
  const { code } = refusedSchema.parse(JSON.parse(answer.body));
  if (code !== "throttled") throw new Refusal(code);
  const headers = throttleHeaders("callback-refused", REFUSAL_RATE, answer.retryAfterMs ?? windowMs);
  throw new Refusal(code, { headers });
}
