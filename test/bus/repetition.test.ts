/** Requests that are repeated because their first process does not answer, and the claims that prevent a second run. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Msg } from "nats";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { addRepeatedCount, probeSubject } from "../../services/bus/exchange.ts";
import { BUS_LIMITS } from "../../services/bus/limits.ts";
import {
  type ClaimNow,
  call,
  knownOperations,
  needsClaim,
  type Operation,
  once,
  REPETITIONS,
  repeatable,
  type Serving,
  serve,
} from "../../services/bus/operation.ts";
import { RefusedError, UnavailableError } from "../../services/bus/refusals.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { requestClaims } from "../../services/db/request-claims.ts";
import { QUIET } from "../support/quiet-log.ts";
import { cloneDatabase, startNats, type TestDatabase, type TestServer } from "../support/servers.ts";

const MESSAGES = join(import.meta.dirname, "..", "..", "services", "bus", "messages");
const empty = z.object({});
const named = z.object({ by: z.string() });
const read = repeatable("test.read", empty, named);
const create = once("test.create", empty, named);

let nats: TestServer;
let database: TestDatabase;
let sql: Database;
let caller: Bus;
let first: Bus;
let second: Bus;
const serving: Serving[] = [];

beforeAll(async () => {
  [nats, database] = await Promise.all([startNats(), cloneDatabase()]);
  sql = openDatabase({ url: database.url });
  const connect = (name: string) => connectBus({ url: nats.url, name, log: QUIET });
  [caller, first, second] = await Promise.all([connect("caller"), connect("first"), connect("second")]);
});
afterEach(() => {
  for (const served of serving.splice(0)) served.unsubscribe();
});
afterAll(async () => {
  await Promise.all([caller.close(), first.close(), second.close(), closeDatabase(sql)]);
  await Promise.all([nats.stop(), database.drop()]);
});

type Served = Operation<typeof empty, typeof named>;

/** Serves the operation. Processes of one queue group share the requests, and each group receives every request. */
async function answer(
  bus: Bus,
  operation: Served,
  handler: () => Promise<{ by: string }>,
  queue = "test",
): Promise<Serving> {
  const served = serve({ nc: bus.nc, log: QUIET, queue, claim: requestClaims(sql) }, operation, handler);
  serving.push(served);
  await bus.nc.flush();
  return served;
}

/** A process that is stalled: it receives requests and does nothing. Returns the requests that it has received. */
async function stalled(operation: Served): Promise<{ readonly taken: Msg[]; readonly end: () => void }> {
  const taken: Msg[] = [];
  const subscription = first.nc.subscribe(operation.subject, {
    queue: "test",
    callback: (_error, message) => void taken.push(message),
  });
  await first.nc.flush();
  return { taken, end: () => subscription.unsubscribe() };
}

describe("a request whose process is stalled", () => {
  it("a second process serves the operation: that one answers, and the repetition is counted", async () => {
    const { taken, end } = await stalled(read);
    const metrics = new Registry();
    addRepeatedCount(metrics, caller.nc, knownOperations);
    expect(await metrics.metrics()).toContain('bus_requests_repeated_total{operation="test.read"} 0');
    const asked = call(caller.nc, read, {});
    await expect.poll(() => taken.length).toBe(1);
    await answer(second, read, async () => ({ by: "second" }));
    expect(await asked).toEqual({ by: "second" });
    expect(await metrics.metrics()).toContain('bus_requests_repeated_total{operation="test.read"} 1');
    end();
  });

  it("no process offers: fails at the deadline with one request sent", async () => {
    const { taken, end } = await stalled(read);
    await expect(call(caller.nc, read, {}, 1_000)).rejects.toBeInstanceOf(UnavailableError);
    expect(taken).toHaveLength(1);
    end();
  });

  it("each process that offers is stalled too: the request is sent three times at most", async () => {
    const { taken, end } = await stalled(read);
    const offers = second.nc.subscribe(probeSubject(read.subject), {
      callback: (_error, message) => void message.respond(JSON.stringify({ offer: "test.offered" })),
    });
    const direct: Msg[] = [];
    const offered = second.nc.subscribe("test.offered", { callback: (_error, message) => void direct.push(message) });
    await second.nc.flush();
    await expect(call(caller.nc, read, {}, 3_000)).rejects.toBeInstanceOf(UnavailableError);
    expect(taken.length + direct.length).toBe(1 + BUS_LIMITS.repetitions);
    for (const subscription of [offers, offered]) subscription.unsubscribe();
    end();
  });
});

describe("a request that takes long", () => {
  it("its process reports that it works: no other process gets the request", async () => {
    const runs: string[] = [];
    const slow = (by: string) => async () => {
      runs.push(by);
      await delay(1_500);
      return { by };
    };
    await answer(first, read, slow("first"));
    await answer(second, read, slow("second"));
    const { by } = await call(caller.nc, read, {});
    expect(runs).toEqual([by]);
  });

  it("its process reports nothing and another one answers `busy`: the caller gets an unknown outcome", async () => {
    const { taken, end } = await stalled(read);
    const asked = call(caller.nc, read, {});
    await expect.poll(() => taken.length).toBe(1);
    const busy = second.nc.subscribe(probeSubject(read.subject), {
      callback: (_error, message) => void message.respond(JSON.stringify({ offer: "test.busy" })),
    });
    second.nc.subscribe("test.busy", {
      max: 1,
      callback: (_error, message) =>
        void message.respond(JSON.stringify({ refusal: { code: "busy", retryAfterMs: 5 } })),
    });
    await expect(asked).rejects.toBeInstanceOf(UnavailableError);
    busy.unsubscribe();
    end();
  });
});

describe("a request that may be carried out once", () => {
  it("two processes receive it six times with the same inbox: it is carried out once", async () => {
    let runs = 0;
    const handler = async () => {
      runs += 1;
      return { by: "one of them" };
    };
    await answer(first, create, handler);
    await answer(second, create, handler, "another");
    const bodies: unknown[] = [];
    caller.nc.subscribe("test.inbox", { callback: (_error, message) => void bodies.push(message.json()) });
    for (let count = 0; count < 6; count += 1) caller.nc.publish(create.subject, "{}", { reply: "test.inbox" });
    await expect.poll(() => bodies).toContainEqual({ reply: { by: "one of them" } });
    await expect.poll(() => bodies.filter((body) => "claimed" in (body as object)).length).toBeGreaterThan(0);
    await delay(100);
    expect(runs).toBe(1);
  });

  it("its process stalls before it has begun it: another one carries it out, and the first does not later", async () => {
    const { taken, end } = await stalled(create);
    const asked = call(caller.nc, create, {});
    await expect.poll(() => taken.length).toBe(1);
    let runs = 0;
    const handler = async () => {
      runs += 1;
      return { by: "it" };
    };
    await answer(second, create, handler);
    expect(await asked).toEqual({ by: "it" });
    end();
    // Now the first process continues and receives the request.
    const [message] = taken;
    await answer(first, create, handler);
    caller.nc.publish(create.subject, "{}", { reply: message?.reply ?? "" });
    await caller.nc.flush();
    await delay(100);
    expect(runs).toBe(1);
  });

  it("its process stalls after it has begun it: within 2 s, the caller gets an unknown outcome", async () => {
    const { taken, end } = await stalled(create);
    const asked = call(caller.nc, create, {});
    const refused = expect(asked).rejects.toBeInstanceOf(UnavailableError);
    await expect.poll(() => taken.length).toBe(1);
    expect(await requestClaims(sql)(taken[0]?.reply ?? "")).toBe(true);
    const startedAtMs = performance.now();
    let runs = 0;
    await answer(second, create, async () => {
      runs += 1;
      return { by: "second" };
    });
    await refused;
    expect(performance.now() - startedAtMs).toBeLessThan(2_000);
    expect(runs).toBe(0);
    end();
  });

  it("its handler makes the claim: a refused request leaves none; another request runs at one of two processes", async () => {
    let runs = 0;
    let isRefused = true;
    const handler = async (_: object, claimNow: ClaimNow): Promise<{ by: string }> => {
      if (isRefused) throw new RefusedError({ code: "not_found" });
      await claimNow();
      runs += 1;
      return { by: "it" };
    };
    const served = { log: QUIET, claim: requestClaims(sql), handlerClaims: true };
    serving.push(serve({ ...served, nc: first.nc, queue: "test" }, create, handler));
    serving.push(serve({ ...served, nc: second.nc, queue: "another" }, create, handler));
    await Promise.all([first.nc.flush(), second.nc.flush()]);
    const claims = async (): Promise<number> => (await sql`select from request_claims`).length;
    const before = await claims();
    await expect(call(caller.nc, create, {})).rejects.toMatchObject({ refusal: { code: "not_found" } });
    expect(await claims()).toBe(before);
    isRefused = false;
    expect(await call(caller.nc, create, {})).toEqual({ by: "it" });
    expect(await claims()).toBe(before + 1);
    expect(runs).toBe(1);
  });

  it("its handler should make the claim and does not: the caller gets unavailable", async () => {
    const deps = { nc: first.nc, log: QUIET, queue: "test", claim: requestClaims(sql), handlerClaims: true };
    serving.push(serve(deps, create, async () => ({ by: "it" })));
    await first.nc.flush();
    await expect(call(caller.nc, create, {})).rejects.toMatchObject({ refusal: { code: "unavailable" } });
  });

  it("a service without claims: `serve` refuses such an operation", () => {
    const deps = { nc: first.nc, log: QUIET, queue: "test" };
    expect(() => serve(deps, create, async () => ({ by: "it" }))).toThrow("test.create may be carried out once only");
  });
});

describe("a request at a process that is cut off from what it needs", () => {
  /** Requests that each process has received. */
  let received: string[] = [];
  const serveAt = async (bus: Bus, by: string, operation: Served, isCutOff: boolean): Promise<void> => {
    const isSilent = (error?: unknown): boolean => isCutOff && error !== undefined;
    const deps = { nc: bus.nc, log: QUIET, queue: "test", claim: async () => true, isSilent };
    const handler = async (): Promise<{ by: string }> => {
      received.push(by);
      if (isCutOff) throw new Error("It is cut off.");
      return { by };
    };
    serving.push(serve(deps, operation, handler));
    await bus.nc.flush();
  };
  afterEach(() => {
    received = [];
  });
  const within = async (limitMs: number, work: () => Promise<unknown>): Promise<void> => {
    const startedAtMs = performance.now();
    await work();
    expect(performance.now() - startedAtMs).toBeLessThan(limitMs);
  };

  it("another process reaches it: that one carries out the request, before a silence would count", async () => {
    await serveAt(first, "first", read, true);
    await serveAt(second, "second", read, false);
    // The server chooses the process that gets a request.
    for (let count = 0; count < 10 || !received.includes("first"); count += 1) {
      await within(BUS_LIMITS.silenceMs, async () => expect(await call(caller.nc, read, {})).toEqual({ by: "second" }));
    }
  });

  it("each other process is cut off, too: each gets the request once, and the caller gets `unavailable` soon", async () => {
    await serveAt(first, "first", read, true);
    await serveAt(second, "second", read, true);
    await within(2.5 * BUS_LIMITS.silenceMs, async () => {
      await expect(call(caller.nc, read, {})).rejects.toMatchObject({ refusal: { code: "unavailable" } });
    });
    expect(received.toSorted()).toEqual(["first", "second"]);
  });

  it("it has claimed the request before: no other process gets it, and the caller gets `unavailable` at once", async () => {
    await serveAt(first, "first", create, true);
    await within(BUS_LIMITS.silenceMs, async () => {
      await expect(call(caller.nc, create, {})).rejects.toMatchObject({ refusal: { code: "unavailable" } });
    });
    expect(received).toEqual(["first"]);
  });
});

describe("serve: drained while a handler runs", () => {
  it("resolves when the handler has answered, and takes no request after that", async () => {
    const begun = Promise.withResolvers<void>();
    let isDone = false;
    const served = await answer(first, read, async () => {
      begun.resolve();
      await delay(300);
      isDone = true;
      return { by: "first" };
    });
    const asked = call(caller.nc, read, {});
    await begun.promise;
    await served.drain();
    expect(isDone).toBe(true);
    expect(await asked).toEqual({ by: "first" });
    await expect(call(caller.nc, read, {})).rejects.toBeInstanceOf(UnavailableError);
  });
});

describe("the operations of all services", () => {
  it("each declares whether it may be repeated; a key of the request makes a creation repeatable", async () => {
    const operations: Operation<z.ZodType, z.ZodType>[] = [];
    for (const file of readdirSync(MESSAGES)) {
      const module = (await import(join(MESSAGES, file))) as Record<string, unknown>;
      for (const value of Object.values(module)) if (isOperation(value)) operations.push(value);
    }
    expect(operations.length).toBeGreaterThan(80);
    for (const { subject, repetition, request } of operations) {
      expect(REPETITIONS, subject).toContain(repetition);
      const hasKey = request instanceof z.ZodObject && "idempotencyKey" in request.shape;
      expect(repetition === "repeatable_with_key", subject).toBe(hasKey);
      if (!/\.(?:list|get|find)|\.health$|\.announce\./.test(subject)) continue;
      expect(repetition, subject).toBe("repeatable");
    }
    expect(needsClaim("repeatable_with_key", { idempotencyKey: "k" })).toBe(false);
    expect(needsClaim("repeatable_with_key", {})).toBe(true);
  });
});

function isOperation(value: unknown): value is Operation<z.ZodType, z.ZodType> {
  return typeof value === "object" && value !== null && "subject" in value && "reply" in value && "request" in value;
}
