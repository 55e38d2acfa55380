/** A stream is deleted while the service runs: the relay reports it until `npm run migrate` creates the stream again. */
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { relayHealth } from "../../services/bus/messages/health.ts";
import { call } from "../../services/bus/operation.ts";
import { LIVENESS } from "../../services/bus/streams.ts";
import { createLog } from "../../services/runtime/log.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import { metricSum, parseSeries } from "../support/scrape.ts";
import { type RelayFixture, startRelayFixture } from "./relay-fixture.ts";

const WAIT = { timeout: 10_000, interval: 50 };
let fixture: RelayFixture;
beforeAll(async () => {
  fixture = await startRelayFixture();
});
afterAll(async () => {
  await fixture.stop();
});

test("a deleted stream: the relay logs it once and reports a fault until the stream exists again", async () => {
  const { nats, database, bus } = fixture;
  const log = createLog({ service: "test", level: "silent" });
  const error = vi.spyOn(log, "error");
  const metrics = new Registry();
  await fixture.startRelay({ log, metrics });
  const missing = async () => metricSum(parseSeries(await metrics.metrics()), "relay_streams_missing");
  const becomes = (fault: string | null) =>
    vi.waitFor(async () => expect(await call(bus.nc, relayHealth, {})).toMatchObject({ fault }), WAIT);
  await becomes(null);
  expect(await missing()).toBe(0);
  await bus.jsm.streams.delete(LIVENESS.name);
  await becomes("streams_missing");
  expect(await missing()).toBe(1);
  expect(error).toHaveBeenCalledExactlyOnceWith(
    { streams: [LIVENESS.name] },
    "the bus lacks streams: run `npm run migrate`",
  );
  await prepareBus(nats.url, database.url);
  await becomes(null);
  expect(await missing()).toBe(0);
});
