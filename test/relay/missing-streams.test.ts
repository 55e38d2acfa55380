/** A stream is deleted while the service runs: the relay reports it until `npm run migrate` creates the stream again. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { relayHealth } from "../../services/bus/messages/health.ts";
import { call } from "../../services/bus/operation.ts";
import { LIVENESS } from "../../services/bus/streams.ts";
import { createLog } from "../../services/runtime/log.ts";
import { prepareBus } from "../support/prepared-bus.ts";
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
  await fixture.startRelay({ log });
  const becomes = (fault: string | null) =>
    vi.waitFor(async () => expect(await call(bus.nc, relayHealth, {})).toMatchObject({ fault }), WAIT);
  await becomes(null);
  await bus.jsm.streams.delete(LIVENESS.name);
  await becomes("streams_missing");
  expect(error).toHaveBeenCalledExactlyOnceWith(
    { streams: [LIVENESS.name] },
    "the bus lacks streams: run `npm run migrate`",
  );
  await prepareBus(nats.url, database.url);
  await becomes(null);
});
