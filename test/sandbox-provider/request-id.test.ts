/** A log line of the sandbox provider, also of a callback, has the id of the request for which the providers service asks. */
import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { createHttpClient } from "../../services/providers/adapters/http-client.ts";
import { addProviderMetrics } from "../../services/providers/metrics.ts";
import { currentRequestId, forRequest } from "../../services/runtime/log.ts";
import { openAccount } from "../../services/sandbox-provider/accounts.ts";
import type { SandboxDeps } from "../../services/sandbox-provider/deps.ts";
import { startHttpServer } from "../../services/sandbox-provider/server.ts";
import { startWork } from "../../services/sandbox-provider/work.ts";
import { cloneDatabase } from "../support/servers.ts";
import { waitFor } from "../support/wait-for.ts";

test("a request that fails: the log line has the id that the providers service has sent, or none", async () => {
  const requestIds: (string | undefined)[] = [];
  const log = { error: () => void requestIds.push(currentRequestId()) };
  // Without a database every request with a key fails.
  const deps = { log, activity: { lastPostAtMs: 0 } } as unknown as SandboxDeps;
  const server = await startHttpServer(deps, { host: "127.0.0.1", port: 0 });
  onTestFinished(() => server.stop());
  const client = createHttpClient(addProviderMetrics(undefined));
  onTestFinished(() => client.close());
  const url = new URL(`http://127.0.0.1:${server.port}/v1/payments/by-reference/A`);
  const signal = AbortSignal.timeout(10_000);
  const ask = () =>
    client.ask({ operation: "payment_look_up", method: "GET", url, apiKey: "key", signal }, () => undefined);
  for (const requestId of ["the-collection", undefined])
    await expect(forRequest(requestId, ask)).rejects.toMatchObject({ failure: "provider_unavailable" });
  await fetch(url, { headers: { authorization: "Bearer key", "x-request-id": "not an id" } });
  expect(requestIds).toEqual(["the-collection", undefined, undefined]);
});

test("callbacks of a payment and of further money: their log lines have the id of the payment's request", async () => {
  const server = await cloneDatabase();
  onTestFinished(() => server.drop());
  const database = openDatabase({ url: server.url, maxConnections: 4 });
  onTestFinished(() => closeDatabase(database));
  const lines: { readonly callbackId: number; readonly requestId?: string }[] = [];
  const mixin = (): object => ({ requestId: currentRequestId() });
  const log = pino({ mixin }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const deps: SandboxDeps = {
    database,
    log,
    key: randomBytes(32),
    installationKeyHash: randomBytes(32),
    decidesAfterMs: 0,
    // No server listens there.
    callbackOrigin: "http://127.0.0.1:1",
    certificateFile: undefined,
    guestUrl: (paymentId) => `http://127.0.0.1/pay/${paymentId}`,
    activity: { lastPostAtMs: Number.NEGATIVE_INFINITY },
  };
  const http = await startHttpServer(deps, { host: "127.0.0.1", port: 0 });
  onTestFinished(() => http.stop());
  const { api_key: apiKey } = (await openAccount(deps, { name: "Bistro" })).json as { readonly api_key: string };
  const pay = async (amount: string, headers: Record<string, string>) => {
    const body = JSON.stringify({
      reference: `R-${amount.replace(".", "-")}`,
      amount,
      currency: "EUR",
      description: "Order 7",
      expires_at: new Date(Date.now() + 60_000).toISOString(),
      callback_url: `${deps.callbackOrigin}/callback/`,
    });
    const authorization = `Bearer ${apiKey}`;
    const url = `http://127.0.0.1:${http.port}/v1/payments`;
    expect((await fetch(url, { method: "POST", headers: { ...headers, authorization }, body })).status).toBe(201);
  };
  await pay("10.22", { "x-request-id": "the-collection" });
  const work = startWork(deps);
  onTestFinished(() => work.stop());
  const requestIds = () => new Map(lines.map(({ callbackId, requestId }) => [callbackId, requestId]));
  await waitFor("both callbacks", () => requestIds().size === 2);
  await pay("12.50", {});
  await waitFor("the callback of the other payment", () => requestIds().size === 3);
  expect([...requestIds().values()]).toEqual(["the-collection", "the-collection", undefined]);
});
