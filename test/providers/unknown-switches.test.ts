/** Unknown kill switches: no electronic payment is requested, and cash stays available. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { SWITCHES } from "../../services/bus/streams.ts";
import { followSwitches } from "../../services/bus/switches-replica.ts";
import { createLog } from "../../services/runtime/log.ts";
import { noteBucketsComplete } from "../support/buckets-complete.ts";
import { waitFor } from "../support/wait-for.ts";
import { type ProvidersWorld, refusalOf, startProvidersWorld } from "./providers-world.ts";
import { openQrCounter } from "./qr-counter.ts";

let world: ProvidersWorld;
beforeAll(async () => {
  world = await startProvidersWorld({ hasRealStations: true });
});
afterAll(() => world.stop());

test("the bus has lost the switches: only cash is available until the registry has published them again", async () => {
  const counter = await openQrCounter(world, "approve");
  const { place, configId, orderId } = counter;
  const replica = await followSwitches(world.bus, createLog({ service: "test", level: "silent" }));
  expect(replica.isTrusted()).toBe(true);
  await world.bus.jsm.streams.delete(`KV_${SWITCHES.name}`);
  await waitFor("the switches are not trusted any more", () => !replica.isTrusted());
  const collect = (route: "dynamic_qr" | "smart_pos" | "attested_terminal" | "cash") =>
    counter.act({ type: "intent_create", route, orderId }).then(({ reply }) => reply);
  // The host's feed has lost the switches too. In this time, the host notices it.
  await delay(500);
  const electronic = ["dynamic_qr", "smart_pos", "attested_terminal"] as const;
  const outcomes = await Promise.allSettled(electronic.map(collect));
  expect(outcomes.map((outcome) => outcome.status === "rejected" && outcome.reason)).toEqual(
    electronic.map(() => expect.objectContaining({ code: "unavailable" })),
  );
  const intent = await world.openIntent(place, 1_250);
  expect(await refusalOf(world.askProviderOnce(place, configId, intent))).toMatchObject({ code: "unavailable" });
  const rows = await world.database`select from provider_payments where intent_id = ${intent.intentId}`;
  expect(rows).toHaveLength(0);
  const cash = await collect("cash");
  if (!cash.ok || cash.type !== "intent") throw new Error(`No cash: ${JSON.stringify(cash)}`);
  await counter.act({ type: "intent_cancel", intentId: cash.intentId });

  await ensureStreams(world.bus, { replicas: 1, logs: 1 });
  // A new bucket does not show which switches were on. Until the registry has published them, only cash is available.
  await delay(1_000);
  expect(replica.isTrusted()).toBe(false);
  await expect(collect("dynamic_qr")).rejects.toMatchObject({ code: "unavailable" });
  await noteBucketsComplete(world.bus);
  await waitFor("the switches are trusted again", () => replica.isTrusted(), 20_000);
  const collected = async () => {
    const { intent: current, ended } = await counter.state();
    return [current, ...ended].find((each) => each?.route === "dynamic_qr")?.intentId;
  };
  await expect
    .poll(
      async () => {
        const answer: unknown = await collect("dynamic_qr").catch((error: unknown) => error);
        // A collection may exist although its answer came too late.
        return (await collected()) === undefined ? answer : "collected";
      },
      { timeout: 20_000 },
    )
    .toBe("collected");
  const intentId = (await collected()) ?? 0;
  expect(await counter.ended(intentId, 20_000)).toMatchObject({ status: "succeeded" });
  replica.stop();
});
