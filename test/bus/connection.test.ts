import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Bus, BusDownError, connectBus } from "../../services/bus/connection.ts";
import { QUIET } from "../support/quiet-log.ts";
import { startNats, type TestServer } from "../support/servers.ts";
import { eventually } from "../support/wait-for.ts";

describe("the connection to the bus", () => {
  let nats: TestServer;
  const opened: Bus[] = [];
  const connect = async (url = nats.url): Promise<Bus> => {
    const bus = await connectBus({ url, name: "test", log: QUIET, withinMs: 300 });
    opened.push(bus);
    return bus;
  };
  beforeAll(async () => {
    nats = await startNats();
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((bus) => bus.close()));
  });
  afterAll(() => nats.stop());

  it("an address with a token: the process is connected, and uses JetStream", async () => {
    const bus = await connect();
    expect(bus.isUp()).toBe(true);
    expect((await bus.jsm.getAccountInfo()).streams).toBe(0);
  });

  it("a stream without a leader: the error names the stream, and does not report that JetStream is off", async () => {
    const bus = await connect();
    const failed = bus.js.publish("$KV.NOTHING.secret", "");
    await expect(failed).rejects.toThrow("No server takes messages at $KV.NOTHING now.");
    await expect(failed).rejects.toMatchObject({ code: "no_stream_leader" });
  });

  it("it breaks: requests fail at once, also those in progress, and work again when the server is back", async () => {
    const bus = await connect();
    const changes: boolean[] = [];
    bus.onChange((isUp) => changes.push(isUp));
    bus.nc.subscribe("never.answers", { callback: () => undefined });
    await bus.nc.flush();
    const startedAt = performance.now();
    // A stalled server sends no answer before it is killed.
    nats.signal("SIGSTOP");
    const underWay = bus.nc.request("never.answers", "", { timeout: 20_000 }).catch((error: unknown) => error);
    const flushing = bus.nc.flush().catch((error: unknown) => error);
    await nats.kill9();
    expect(await underWay).toBeInstanceOf(BusDownError);
    expect(await flushing).toBeInstanceOf(BusDownError);
    await expect(bus.nc.request("anything", "", { timeout: 20_000 })).rejects.toBeInstanceOf(BusDownError);
    await expect(bus.js.publish("anything")).rejects.toBeInstanceOf(BusDownError);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    await nats.restart();
    await eventually(() => bus.isUp());
    expect((await bus.jsm.getAccountInfo()).streams).toBe(0);
    expect(changes).toEqual([false, true]);
  });

  it("its `close`: listeners are not notified, and requests fail", async () => {
    const bus = await connect();
    const changes: boolean[] = [];
    bus.onChange((isUp) => changes.push(isUp));
    await bus.close();
    expect(changes).toEqual([]);
    expect(bus.isUp()).toBe(false);
    await expect(bus.nc.request("anything")).rejects.toBeInstanceOf(BusDownError);
  });

  it.each([
    ["wrong", "the server refuses the user, the password or the token of the address; correct them"],
    [
      "",
      "the server asks for credentials and there are none; name them as in nats://user:password@127.0.0.1:4222, or set NATS_CREDENTIALS_FILE",
    ],
  ])("credentials %o that the server refuses: one sentence with the address and the next step", async (user, rule) => {
    const url = new URL(nats.url);
    url.username = user;
    url.password = "";
    await expect(connect(url.href)).rejects.toMatchObject({
      code: "nats_refused",
      message: `The NATS at ${url.host} (NATS_URL) cannot be used: ${rule}.`,
    });
  });

  it("no server answers: one sentence, without the credentials", async () => {
    const url = new URL(nats.url);
    url.port = "1";
    const failure = await connect(url.href).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: "nats_unreachable",
      message:
        "The NATS at 127.0.0.1:1 (NATS_URL) cannot be used: nothing listens at that address (ECONNREFUSED); start the server, or correct host and port.",
    });
  });

  it("a server that is down at the start: the process knows it later, when it needs another one", async () => {
    // The client dials the servers in a random order.
    const both = Array.from({ length: 8 }, () => connect(`${nats.url},nats://127.0.0.1:1`));
    for (const { nc } of await Promise.all(both))
      expect(nc.getServers().map(({ listen }) => listen)).toContain("127.0.0.1:1");
  });

  it("an invalid address: one sentence", async () => {
    await expect(connect("nats://")).rejects.toMatchObject({ code: "invalid_setting" });
  });
});
