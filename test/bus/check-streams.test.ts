/** What each process checks of the bus at its start; only `migrate` creates or changes streams. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { checkStreams, ensureStreams } from "../../services/bus/ensure-streams.ts";
import { LAYOUT_VERSION } from "../../services/bus/stream-config.ts";
import { startNats, type TestServer } from "../support/servers.ts";
import { QUIET } from "./waiting.ts";

describe("the check of the streams", () => {
  let nats: TestServer;
  let bus: Bus;
  beforeAll(async () => {
    nats = await startNats();
    bus = await connectBus({ url: nats.url, name: "test", log: QUIET });
  });
  afterAll(async () => {
    await bus.close();
    await nats.stop();
  });
  const refusal = (sentence: string) => ({
    code: "bus_not_migrated",
    message: expect.stringMatching(new RegExp(`${sentence}: run .npm run migrate., and start again\\.$`)) as string,
  });

  test("a new bus: refused with the next step, and nothing is created", async () => {
    await expect(checkStreams(bus)).rejects.toMatchObject(refusal("has not been prepared for this service"));
    expect(await bus.jsm.streams.list().next()).toEqual([]);
  });

  test("a bus that was migrated: its layout", async () => {
    await ensureStreams(bus, { replicas: 1, logs: 1 });
    expect(await checkStreams(bus)).toMatchObject({ replicas: 1 });
  });

  test("a stream that is missing: refused by its name", async () => {
    await bus.jsm.streams.delete("LIVENESS");
    await expect(checkStreams(bus)).rejects.toMatchObject(refusal("has no stream LIVENESS"));
    await ensureStreams(bus, { replicas: 1, logs: 1 });
    await checkStreams(bus);
  });

  test("a stream that somebody has changed: refused by its setting, and left as it is", async () => {
    await bus.jsm.streams.update("KV_CREDENTIALS", { max_msgs_per_subject: 3 });
    await expect(checkStreams(bus)).rejects.toMatchObject(
      refusal("has a stream KV_CREDENTIALS whose max_msgs_per_subject is not what this version needs"),
    );
    expect((await bus.jsm.streams.info("KV_CREDENTIALS")).config.max_msgs_per_subject).toBe(3);
    await ensureStreams(bus, { replicas: 1, logs: 1 });
  });

  test("a bus of a newer version: accepted, because older processes run until they are replaced", async () => {
    const { config } = await bus.jsm.streams.info("KV_INSTALLATION");
    const metadata = { ...config.metadata, "device-payments-layout": String(LAYOUT_VERSION + 1) };
    await bus.jsm.streams.update("KV_INSTALLATION", { metadata });
    await bus.jsm.streams.update("KV_CREDENTIALS", { max_msgs_per_subject: 3 });
    expect(await checkStreams(bus)).toMatchObject({ replicas: 1, version: LAYOUT_VERSION + 1 });
  });
});
