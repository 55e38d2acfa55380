import { setTimeout as pause } from "node:timers/promises";
import type { Msg } from "nats";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { turnPublisher } from "../../services/bus/turn-publisher.ts";
import { QUIET } from "../support/quiet-log.ts";
import { startNats, type TestServer } from "../support/servers.ts";
import { eventually } from "../support/wait-for.ts";

const SUBJECT = "test.turn";
const numbers = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index));

describe("publishing once per turn of the event loop", () => {
  let nats: TestServer;
  let receiver: Bus;
  const received: string[] = [];
  const opened: Bus[] = [];
  const connect = async (): Promise<Bus> => {
    const bus = await connectBus({ url: nats.url, name: "test", log: QUIET });
    opened.push(bus);
    return bus;
  };
  beforeAll(async () => {
    nats = await startNats();
    receiver = await connectBus({ url: nats.url, name: "receiver", log: QUIET });
    receiver.nc.subscribe(SUBJECT, { callback: (_error, message: Msg) => void received.push(message.string()) });
    await receiver.nc.flush();
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((bus) => bus.close()));
    // After this, no message of this test can arrive in the next test.
    await receiver.nc.flush();
    received.length = 0;
  });
  afterAll(async () => {
    await receiver.close();
    await nats.stop();
  });

  it("messages of one turn, of several turns and around a flush: they arrive in order", async () => {
    const { nc } = await connect();
    const sent = numbers(300);
    for (const [index, body] of sent.entries()) {
      turnPublisher(nc).publish(SUBJECT, body);
      if (index === 99) await pause(1);
      if (index === 199) expect(turnPublisher(nc).flush()).toBeGreaterThan(0);
    }
    await eventually(() => received.length >= sent.length);
    expect(received).toEqual(sent);
  });

  it("before the turn ends: nothing is sent, except by a flush", async () => {
    const { nc } = await connect();
    const before = nc.stats().outMsgs;
    turnPublisher(nc).publish(SUBJECT, "a");
    expect(nc.stats().outMsgs).toBe(before);
    expect(turnPublisher(nc).flush()).toBe(1);
    expect(nc.stats().outMsgs).toBe(before + 1);
    expect(turnPublisher(nc).flush()).toBe(0);
    await pause(5);
    expect(nc.stats().outMsgs).toBe(before + 1);
  });

  it("the connection refuses a message: it is reported, and the next one is sent", async () => {
    const { nc } = await connect();
    const refused: string[] = [];
    const note = (what: string) => (cause: unknown) => void refused.push(`${what}: ${cause instanceof Error}`);
    turnPublisher(nc).publish("not a subject", "", undefined, note("subject"));
    turnPublisher(nc).publish(SUBJECT, "good", undefined, note("good"));
    await eventually(() => received.length === 1);
    expect(refused).toEqual(["subject: true"]);
    await nc.close();
    turnPublisher(nc).publish(SUBJECT, "late", undefined, note("closed"));
    await eventually(() => refused.length === 2);
    expect(refused).toEqual(["subject: true", "closed: true"]);
  });

  it("the connection is closed in the same turn, or before the next one: no message is lost", async () => {
    for (let round = 0; round < 20; round += 1) {
      received.length = 0;
      const bus = await connect();
      const sent = numbers(50);
      // The first half is published in the turn of the closing, the other half while the server confirms the first half.
      for (const body of sent.slice(0, 25)) turnPublisher(bus.nc).publish(SUBJECT, body);
      const publishRest = async (): Promise<void> => {
        await bus.nc.flush();
        for (const body of sent.slice(25)) turnPublisher(bus.nc).publish(SUBJECT, body);
      };
      await Promise.all([publishRest(), bus.close()]);
      await eventually(() => received.length >= sent.length);
      expect(received).toEqual(sent);
    }
  });
});
