/** Callbacks of an `emvco_generic` provider, signed as its scheme's operator would sign them. */
import { createHmac } from "node:crypto";
import { receiveCallback } from "../../services/bus/messages/callbacks.ts";
import type { ReplyOf } from "../../services/bus/operation.ts";
import type { ProvidersWorld } from "./providers-world.ts";

export function signature(body: string, secret: string, atMs: number = Date.now()): string {
  const timestamp = Math.floor(atMs / 1_000);
  return `t=${timestamp},v1=${createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex")}`;
}

export interface SignedBody {
  readonly configId: number;
  readonly body: string;
  readonly secret: string;
  readonly atMs?: number;
  readonly address?: string;
  /** In place of the right one. */
  readonly header?: string;
}

export function sendCallback(world: ProvidersWorld, sent: SignedBody): Promise<ReplyOf<typeof receiveCallback>> {
  const { configId, body, secret, atMs, address = "192.0.2.1", header = signature(body, secret, atMs) } = sent;
  const bodyBase64 = Buffer.from(body).toString("base64");
  return world.ask(receiveCallback, { configId, headers: { "x-provider-signature": header }, bodyBase64, address });
}

let events = 0;

/** The body of a callback that reports a payment. */
export function paidBody(
  data: Readonly<Record<string, unknown>>,
  id: string | undefined = `evt-${(events += 1)}`,
): string {
  return JSON.stringify({ id, type: "payment.paid", data });
}
