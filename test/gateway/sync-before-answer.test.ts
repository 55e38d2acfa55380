/**
 * A command is on the disk before its answer (I4): the gateway sends the answer after nats-server has synced the
 * commits of that command. The system calls of both processes show when each happened.
 */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import type { StationEvent } from "../../machines/station/event.ts";
import { freePort } from "../support/free-port.ts";
import { onlyWhere } from "../support/only-where.ts";
import { logIn, type Person } from "../support/people.ts";
import { type RunningProgram, runProgram } from "../support/running-program.ts";
import { startSystem, type TestSystem } from "../support/system.ts";
import { durableWrites, sent, startTracing, type Tracer } from "../support/system-calls.ts";

const isLinux = process.platform === "linux";

/** Sends a command with an idempotency key. The answer has this key as its request id. */
async function keyed(person: Person, path: string, key: string, body: object): Promise<Record<string, unknown>> {
  return await person.good("POST", path, { key, body, headers: { "x-request-id": key } });
}

/** An answered command, and the commits that its answer reports, each named by its first event. */
interface AnsweredCommand {
  readonly key: string;
  readonly intentId: number;
  readonly events: readonly StationEvent["type"][];
}

/** Does two collections, each with two commands. */
async function collect(baseUrl: string, system: TestSystem): Promise<AnsweredCommand[]> {
  const cashier = await logIn(baseUrl, "cashier", system.cashier);
  const station = `stations/${system.sandbox.stations[0]?.stationId}`;
  await cashier.good("POST", `${station}/lease/`, { body: {} });
  const commands: AnsweredCommand[] = [];
  for (const [route, body] of [
    ["cash", {}],
    ["attested_terminal", { reference: "SLIP-1" }],
  ] as const) {
    const [createKey, attestKey] = [randomUUID(), randomUUID()];
    const lines = [{ name: "Soup", quantity: 1, unit_amount: "12.50" }];
    const order = await cashier.good("POST", `${station}/orders/`, { body: { lines } });
    const intent = await keyed(cashier, `${station}/intents/`, createKey, { order_id: order["order_id"], route });
    const intentId = Number(intent["intent_id"]);
    const attest = `${station}/intents/${intentId}/attest/`;
    expect(await keyed(cashier, attest, attestKey, body)).toMatchObject({ status: "succeeded" });
    commands.push({ key: createKey, intentId, events: ["intent_created"] });
    commands.push({ key: attestKey, intentId, events: ["settlement_started", "intent_succeeded"] });
  }
  return commands;
}

/** How the list of events begins in the stored commit whose first event is this one. */
function beginningOf(event: StationEvent["type"], intentId: number): string {
  return `"events":[${JSON.stringify({ type: event, intentId }).slice(0, -1)},`;
}

describe.runIf(onlyWhere(isLinux, "the order of system calls"))("a command over HTTP", () => {
  let tracers: { nats: Tracer; gateway: Tracer };
  let system: TestSystem;
  let gateway: RunningProgram;
  let baseUrl: string;
  let isStopped = false;

  beforeAll(async () => {
    tracers = { nats: await startTracing("nats-server"), gateway: await startTracing("gateway") };
    system = await startSystem({ natsPath: tracers.nats.traced(inject("natsBinary").path) });
    const port = await freePort();
    baseUrl = `http://127.0.0.1:${port}`;
    const script = join(import.meta.dirname, "..", "..", "gateway", "main.ts");
    const environment = { NATS_URL: system.nats.url, HOST: "127.0.0.1", PORT: String(port) };
    const program = tracers.gateway.traced(process.execPath);
    gateway = runProgram(program, [script], { env: { ...process.env, ...environment } });
    while ((await fetch(`${baseUrl}/readyz`).catch(() => undefined))?.status !== 200) await delay(50);
  }, 240_000);

  afterAll(async () => {
    if (!isStopped) {
      gateway.process.kill("SIGTERM");
      await system.stop();
    }
    tracers.nats.remove();
    tracers.gateway.remove();
  });

  test("is answered after each of its commits is synced", async () => {
    const commands = await collect(baseUrl, system);
    gateway.process.kill("SIGTERM");
    await gateway.ended;
    await system.stop();
    isStopped = true;
    const [natsCalls, gatewayCalls] = [await tracers.nats.calls(), await tracers.gateway.calls()];
    const answers = sent(gatewayCalls).filter(({ data }) => data.subarray(0, 8).toString() === "HTTP/1.1");
    for (const { key, intentId, events } of commands) {
      const [answer, ...more] = answers.filter(({ data }) => data.includes(key));
      expect(more, `further answers to ${key}`).toEqual([]);
      if (answer === undefined) throw new Error(`The gateway sent no answer to ${key}.`);
      for (const event of events) {
        const commits = durableWrites(natsCalls, "/streams/STATION_LOG_0/msgs/", beginningOf(event, intentId));
        expect(commits, `commits of ${event}`).toHaveLength(1);
        const syncedAtUs = commits[0]?.sync?.ended?.atUs ?? Number.POSITIVE_INFINITY;
        expect(syncedAtUs, `${event} is synced before its answer`).toBeLessThanOrEqual(answer.began.atUs);
      }
    }
  });
});
