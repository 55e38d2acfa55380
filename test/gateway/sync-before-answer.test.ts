/**
 * What is answered is on the disk (I4): the answer to a command leaves the gateway after nats-server has synced the commits
 * of that command. The system calls of both show when each happened.
 */
import { createHash, randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { freePort } from "../../deploy/embedded/free-port.ts";
import { onlyWhere } from "../support/only-where.ts";
import { logIn, type Person } from "../support/people.ts";
import { type RunningProgram, runProgram } from "../support/running-program.ts";
import { startSystem, type TestSystem } from "../support/system.ts";
import { durableWrites, sent, startTracing, type Tracer } from "../support/system-calls.ts";

const isLinux = process.platform === "linux";

/** The keyed command of that person's API; the answer repeats the key in its headers. */
async function keyed(person: Person, path: string, key: string, body: object): Promise<Record<string, unknown>> {
  return await person.good("POST", path, { key, body, headers: { "x-request-id": key } });
}

/** Two collections, each of two commands. Returns the keys of the commands. */
async function collect(baseUrl: string, system: TestSystem): Promise<string[]> {
  const cashier = await logIn(baseUrl, "cashier", system.cashier);
  const station = `stations/${system.sandbox.stations[0]?.stationId}`;
  await cashier.good("POST", `${station}/lease/`, { body: {} });
  const keys: string[] = [];
  for (const [route, body] of [
    ["cash", {}],
    ["attested_terminal", { reference: "SLIP-1" }],
  ] as const) {
    const [createKey, attestKey] = [randomUUID(), randomUUID()];
    keys.push(createKey, attestKey);
    const lines = [{ name: "Soup", quantity: 1, unit_amount: "12.50" }];
    const order = await cashier.good("POST", `${station}/orders/`, { body: { lines } });
    const intent = await keyed(cashier, `${station}/intents/`, createKey, { order_id: order["order_id"], route });
    const attest = `${station}/intents/${String(intent["intent_id"])}/attest/`;
    expect(await keyed(cashier, attest, attestKey, body)).toMatchObject({ status: "succeeded" });
  }
  return keys;
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

  test("a command: answered after its commits are synced", async () => {
    const keys = await collect(baseUrl, system);
    gateway.process.kill("SIGTERM");
    await gateway.ended;
    await system.stop();
    isStopped = true;
    const [natsCalls, gatewayCalls] = [await tracers.nats.calls(), await tracers.gateway.calls()];
    const answers = sent(gatewayCalls).filter(({ data }) => data.subarray(0, 8).toString() === "HTTP/1.1");
    for (const key of keys) {
      const [answer, ...more] = answers.filter(({ data }) => data.includes(key));
      expect(more, `further answers to ${key}`).toEqual([]);
      if (answer === undefined) throw new Error(`The gateway sent no answer to ${key}.`);
      const digest = createHash("sha256").update(key).digest("base64url");
      const commits = durableWrites(natsCalls, "/streams/STATION_LOG/msgs/", digest).filter(
        ({ write }) => write.began.atUs < answer.began.atUs,
      );
      expect(commits.length, `commits of ${key} before its answer`).toBeGreaterThan(0);
      for (const { sync } of commits) {
        expect(sync?.ended?.atUs ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(answer.began.atUs);
      }
    }
  });
});
