/** Callbacks of an `emvco_generic` provider, with signatures as the scheme's operator makes them. */
import { receiveCallback } from "../../services/bus/messages/callbacks.ts";
import type { ReplyOf } from "../../services/bus/operation.ts";
import { signature } from "../support/emvco-settings.ts";
import { type Answer, send } from "../support/http.ts";
import type { ProvidersWorld } from "./providers-world.ts";

export interface SignedBody {
  readonly configId: number;
  readonly body: string;
  readonly secret: string;
  readonly atMs?: number;
  readonly address?: string;
  /** Replaces the correct signature header. */
  readonly header?: string;
}

export function sendCallback(world: ProvidersWorld, sent: SignedBody): Promise<ReplyOf<typeof receiveCallback>> {
  const { configId, body, secret, atMs, address = "192.0.2.1", header = signature(body, secret, atMs) } = sent;
  const bodyBase64 = Buffer.from(body).toString("base64");
  return world.ask(receiveCallback, { configId, headers: { "x-provider-signature": header }, bodyBase64, address });
}

/** Sends the callback over HTTP. */
export function postCallback<T = Record<string, unknown>>(
  baseUrl: string,
  { configId, body, secret }: SignedBody,
): Promise<Answer<T>> {
  const headers = { "content-type": "application/json", "x-provider-signature": signature(body, secret) };
  return send<T>(baseUrl, "POST", `/api/providers/v1/${configId}/callback/`, { body, headers });
}

let events = 0;

/** The body of a callback that reports a payment. */
export function paidBody(
  data: Readonly<Record<string, unknown>>,
  id: string | undefined = `evt-${(events += 1)}`,
): string {
  return JSON.stringify({ id, type: "payment.paid", data });
}
