/** While the providers service does not answer, callbacks hold a bounded part of the gateway. */

import type { Msg } from "nats";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { LIMITS } from "../../gateway/limits.ts";
import { receiveCallback } from "../../services/bus/messages/callbacks.ts";
import { HANGS } from "../support/hangs.ts";
import { type Answer, type Refused, send } from "../support/http.ts";
import { type GatewayWorld, startGatewayWorld } from "./gateway-world.ts";

let world: GatewayWorld;
/** Requests that a providers service has received and not answered. */
const held: Msg[] = [];
beforeAll(async () => {
  world = await startGatewayWorld();
  world.bus.nc.subscribe(receiveCallback.subject, { callback: (_error, message) => void held.push(message) });
});
afterAll(() => world.stop());

const sendCallback = (configId: number): Promise<Answer<Refused>> =>
  send<Refused>(world.baseUrl, "POST", `/api/providers/v1/${configId}/callback/`, { json: { id: "evt-1" } });

it("callbacks of one config: those beyond its share are answered busy, and another config's are forwarded", async () => {
  const { callbacksInFlightPerConfig: share } = LIMITS;
  const flood = Array.from({ length: share + 20 }, () => sendCallback(1));
  await vi.waitUntil(() => held.length === share, HANGS);
  const busy: string[] = [];
  for (const each of flood) void each.then(({ body }) => body.code === "busy" && busy.push(body.code));
  await vi.waitUntil(() => busy.length === 20, HANGS);
  const other = sendCallback(2);
  await vi.waitUntil(() => held.length === share + 1, HANGS);
  const answer = { status: 200, body: JSON.stringify({ received: true, callback_id: 7 }) };
  for (const message of held) message.respond(JSON.stringify({ reply: answer }));
  expect((await other).status).toBe(200);
  const statuses = (await Promise.all(flood)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(share);
  expect(statuses.filter((status) => status === 503)).toHaveLength(20);
  // Every slot is free again.
  const again = sendCallback(1);
  await vi.waitUntil(() => held.length === share + 2, HANGS);
  held.at(-1)?.respond(JSON.stringify({ reply: answer }));
  expect((await again).status).toBe(200);
});
