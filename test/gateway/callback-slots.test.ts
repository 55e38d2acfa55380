/** While the providers service does not answer, the gateway forwards only a limited number of callbacks. */

import type { Msg } from "nats";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { LIMITS } from "../../gateway/limits.ts";
import { receiveCallback } from "../../services/bus/messages/callbacks.ts";
import { HANGS } from "../support/hangs.ts";
import { type Answer, type Refused, send } from "../support/http.ts";
import { type GatewayWorld, startGatewayWorld } from "./gateway-world.ts";

let world: GatewayWorld;
/** Requests that the scripted providers service has received and not answered. */
const held: Msg[] = [];
beforeAll(async () => {
  world = await startGatewayWorld();
  world.bus.nc.subscribe(receiveCallback.subject, { callback: (_error, message) => void held.push(message) });
});
afterAll(() => world.stop());
beforeEach(() => void held.splice(0));

/** The signature has a valid format; only the providers service can check it. */
const SIGNED = { "x-provider-signature": `t=1790000000,v1=${"0".repeat(64)}` };

const sendCallback = (configId: number, headers: Record<string, string> = SIGNED): Promise<Answer<Refused>> =>
  send<Refused>(world.baseUrl, "POST", `/api/providers/v1/${configId}/callback/`, { json: { id: "evt-1" }, headers });

const RECORDED = { status: 200, body: JSON.stringify({ received: true, callback_id: 7 }) };
const answerHeld = (reply: object = RECORDED): void => {
  for (const message of held.splice(0)) message.respond(JSON.stringify({ reply }));
};

describe("callbacks while the providers service does not answer", () => {
  it("a flood for one config: the callbacks above its share wait, and a callback for another config is forwarded", async () => {
    const { newCallbacksInFlightPerConfig: share } = LIMITS;
    const flood = Array.from({ length: share + 20 }, () => sendCallback(1));
    await vi.waitUntil(() => held.length === share, HANGS);
    const other = sendCallback(2);
    await vi.waitUntil(() => held.length === share + 1, HANGS);
    answerHeld();
    expect((await other).status).toBe(200);
    await vi.waitUntil(() => held.length === 20, HANGS);
    answerHeld();
    expect(new Set((await Promise.all(flood)).map(({ status }) => status))).toEqual(new Set([200]));
  });

  it("a sender with a verified callback: uses the config's slots for verified senders and those for new senders", async () => {
    const first = sendCallback(3);
    await vi.waitUntil(() => held.length === 1, HANGS);
    answerHeld();
    expect((await first).status).toBe(200);
    const both = LIMITS.verifiedCallbacksInFlightPerConfig + LIMITS.newCallbacksInFlightPerConfig;
    const sent = Array.from({ length: both }, () => sendCallback(3));
    await vi.waitUntil(() => held.length === both, HANGS);
    answerHeld();
    expect(new Set((await Promise.all(sent)).map(({ status }) => status))).toEqual(new Set([200]));
  });

  it("callbacks without a usable signature: a few are forwarded, the others are refused at once", async () => {
    const { unsignedCallbacksInFlightPerAddress: few } = LIMITS;
    const refused: (string | undefined)[] = [];
    const headers = [{}, { "x-provider-signature": "v1=0" }, { "x-provider-signature": `t=1,v1=${"0".repeat(63)}` }];
    const sent = Array.from({ length: few + 20 }, (_, nth) => sendCallback(4 + nth, headers[nth % 3]));
    for (const each of sent) void each.then(({ status, body }) => refused.push(`${status} ${body.code}`));
    await vi.waitUntil(() => held.length === few && refused.length === 20, HANGS);
    expect(new Set(refused)).toEqual(new Set(["401 signature_invalid"]));
    const signed = sendCallback(4);
    await vi.waitUntil(() => held.length === few + 1, HANGS);
    answerHeld({ status: 401, body: JSON.stringify({ code: "signature_invalid" }) });
    expect((await signed).status).toBe(401);
    expect(new Set((await Promise.all(sent)).map(({ status }) => status))).toEqual(new Set([401]));
  });
});
