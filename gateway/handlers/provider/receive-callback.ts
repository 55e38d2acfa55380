/** A provider's callback: its bytes go over the bus as they came, and the answer's bytes come back as they are. */
import { receiveCallback } from "../../../services/bus/messages/providers.ts";
import { CALLBACK_RATE } from "../../throttle/limits.ts";
import { throttleHeaders } from "../../throttle/token-bucket.ts";
import { type Handler, Refusal } from "../context.ts";

/** The one header that adapters look at. */
const SIGNATURE_HEADER = "x-provider-signature";

/** Nothing is looked at here: the signature is over the raw body, and what it belongs to is the providers service's matter. */
export const takeCallback: Handler<Buffer> = async (context) => {
  const { deps, address } = context;
  const retryAfterMs = deps.callbackThrottle.take(address, deps.nowMs());
  if (retryAfterMs > 0) {
    throw new Refusal("throttled", { headers: throttleHeaders("callback", CALLBACK_RATE, retryAfterMs) });
  }
  const signature = context.header(SIGNATURE_HEADER);
  const { status, body } = await deps.bus.call(receiveCallback, {
    configId: context.id("config_id"),
    headers: signature === "" ? {} : { [SIGNATURE_HEADER]: signature },
    bodyBase64: context.body.toString("base64"),
    address,
  });
  return { status, ready: body };
};
