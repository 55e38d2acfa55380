/** A feed proves that it has everything that was stored before a moment. */
import { beforeAll, expect, test } from "vitest";
import { beatHeaders, bucketBeats } from "../../services/bus/beats.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { Delivered } from "../../services/bus/delivered.ts";
import { openFeed } from "../../services/bus/feed.ts";
import { BUS_LIMITS } from "../../services/bus/limits.ts";
import { readDelivered } from "../../services/bus/messages/outbox.ts";
import { serve } from "../../services/bus/operation.ts";
import { Proofs } from "../../services/bus/proofs.ts";
import { CREDENTIALS } from "../../services/bus/streams.ts";
import { QUIET } from "../support/quiet-log.ts";
import type { TestServer } from "../support/servers.ts";
import { startPreparedBus } from "../support/start-bus.ts";

const PREFIX = `$KV.${CREDENTIALS.name}.`;

let nats: TestServer;
let bus: Bus;
beforeAll(async () => {
  const started = await startPreparedBus();
  ({ nats, bus } = started);
  return started.stop;
});

const follow = (onMessage: (subject: string) => void, of = bus) =>
  openFeed(of, {
    stream: `KV_${CREDENTIALS.name}`,
    filter: `${PREFIX}>`,
    beats: bucketBeats(CREDENTIALS),
    onMessage: ({ subject }) => onMessage(subject),
    onReset: () => undefined,
    log: QUIET,
  });

test("many callers at once: each has everything that was stored before its call", async () => {
  const seen = new Set<string>();
  const feed = follow((subject) => seen.add(subject));
  await feed.caughtUp;
  const calls = Array.from({ length: 200 }, async (_, nth) => {
    const subject = `${PREFIX}entry-${nth}`;
    await bus.js.publish(subject, "{}");
    return [await feed.prove(), seen.has(subject)];
  });
  expect(await Promise.all(calls)).toEqual(calls.map(() => [true, true]));
  feed.stop();
});

test("thousands of callers share a proof: a bounded number continues in each turn of the event loop", async () => {
  const feed = follow(() => undefined);
  await feed.caughtUp;
  let inTurn = 0;
  let mostInTurn = 0;
  const countTurn = (): void => {
    inTurn = 0;
    turn = setImmediate(countTurn);
  };
  let turn = setImmediate(countTurn);
  const calls = Array.from({ length: 2_000 }, async () => {
    const isProved = await feed.prove();
    inTurn += 1;
    mostInTurn = Math.max(mostInTurn, inTurn);
    return isProved;
  });
  expect((await Promise.all(calls)).every(Boolean)).toBe(true);
  clearImmediate(turn);
  expect(mostInTurn).toBeLessThanOrEqual(BUS_LIMITS.provedPerTurn);
  feed.stop();
});

test("a beat that is received again: it proves requests from before it was sent, and none from after that", async () => {
  const sent: string[] = [];
  const publish = (_subject: string, _data: string, { headers }: { headers: ReturnType<typeof beatHeaders> }): void =>
    void sent.push(headers.get("Beat"));
  const proofs = new Proofs({ nc: { ...bus.nc, publish } }, bucketBeats(CREDENTIALS));
  const answers: string[] = [];
  const ask = async (name: string): Promise<void> => {
    const isProved = await proofs.prove();
    answers.push(`${name} ${isProved}`);
  };
  const asked: Promise<void>[] = [];
  for (const [nth, name] of ["first", "second", "third"].entries()) {
    asked.push(ask(name));
    await expect.poll(() => new Set(sent).size).toBe(nth + 1);
  }
  proofs.take({ headers: beatHeaders([...new Set(sent)][1] ?? "") });
  await asked[1];
  expect(answers).toEqual(["first true", "second true"]);
  await asked[2];
  expect(answers.at(-1)).toBe("third false");
});

test("the connection is closed: no proof, and nothing is thrown", async () => {
  const other = await connectBus({ url: nats.url, name: "closing", log: QUIET });
  const feed = follow(() => undefined, other);
  await feed.caughtUp;
  await other.close();
  expect(await feed.prove()).toBe(false);
  feed.stop();
});

test("a proof by what the relay has delivered: needs the newest entry, and a beat of the last 30 s", async () => {
  let [read, beatAgeMs, requests] = [6, 1_000, 0];
  const relay = serve({ nc: bus.nc, log: QUIET, queue: "relay" }, readDelivered, async () => {
    requests += 1;
    return { sequence: 7 };
  });
  const of = { bus, stream: `KV_${CREDENTIALS.name}`, sequence: () => read, beatAgeMs: () => beatAgeMs };
  const delivered = new Delivered(of);
  try {
    await expect.poll(() => requests).toBeGreaterThan(1);
    expect(delivered.ageMs()).toBe(Number.POSITIVE_INFINITY);
    read = 7;
    expect(delivered.ageMs()).toBeLessThan(Number.POSITIVE_INFINITY);
    beatAgeMs = 30_000;
    expect(delivered.ageMs()).toBeLessThan(Number.POSITIVE_INFINITY);
    beatAgeMs = 30_001;
    expect(delivered.ageMs()).toBe(Number.POSITIVE_INFINITY);
  } finally {
    delivered.stop();
    await relay.drain();
  }
});
