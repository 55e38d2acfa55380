/** An owner moves to another process without a fault: no request in progress is sent twice. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Service } from "../../services/runtime/service.ts";
import { SIGNER_LIMITS } from "../../services/webhook-signer/limits.ts";
import { type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

const originalLimits = { ...SIGNER_LIMITS };
let world: SignerWorld;
let signer: Service;
let further: Service;
beforeAll(async () => {
  Object.assign(SIGNER_LIMITS, { drainTimeoutMs: 500 });
  world = await startSignerWorld({ signers: 0 });
  signer = await world.addSigner();
});
afterAll(async () => {
  await world.stop();
  Object.assign(SIGNER_LIMITS, originalLimits);
});

test("an owner moves to a further process once its requests have ended, however slow its target is", async () => {
  const fleets = [await world.openFleet(), await world.openFleet()];
  for (const [at, fleet] of fleets.entries()) {
    await world.addEndpoint(fleet, `/slow/${at}`);
    world.receiver.behave(`/slow/${at}`, () => ({ status: 200, afterMs: 4_000 }));
  }
  await world.emitMany(fleets, 2);
  await waitFor("both under way", () => world.receiver.received.length === 2);
  further = await world.addSigner();
  const isReleased = async (): Promise<boolean> =>
    (await world.database`select from webhook_owners where leased_by is null`).length > 0;
  await waitFor("one of them to be released", isReleased);
  await delay(1_500);
  expect(world.receiver.received).toHaveLength(2);
});

test("a process that stops waits a bounded time for its requests, and the next holder sends the rest again", async () => {
  const fleet = await world.openFleet();
  await world.addEndpoint(fleet, "/hanging");
  world.receiver.behave("/hanging", () => "hang");
  await world.emitMany([fleet], 1);
  const arrivals = (count: number) => () => world.receiver.at("/hanging").length === count;
  await waitFor("the request", arrivals(1));
  const startedAtMs = performance.now();
  await Promise.all([signer.stop(), further.stop()]);
  expect(performance.now() - startedAtMs).toBeLessThan(SIGNER_LIMITS.drainTimeoutMs + 3_000);
  expect(await world.database`select from webhook_owners where leased_by is not null`).toHaveLength(0);
  await world.addSigner();
  await waitFor("the request again", arrivals(2));
});
