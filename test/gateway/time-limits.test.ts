/**
 * What the gateway ends after a time, and what the client then receives: handlers that fail or hang, slow bodies and idle
 * connections (design §4). These tests only wait, so they run at the same time.
 */
import { Writable } from "node:stream";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PlatformCheck } from "../../gateway/http/caller-checks.ts";
import { createClientAddress } from "../../gateway/http/client-address.ts";
import { RequestMetrics } from "../../gateway/http/exchange.ts";
import type { HandlerDeps } from "../../gateway/http/handler-context.ts";
import type { PipelineDeps } from "../../gateway/http/pipeline.ts";
import { anyone, type Route, route } from "../../gateway/http/route.ts";
import { Server, type ServerDeps } from "../../gateway/http/server.ts";
import { errorBodySchema } from "../../gateway/http/shared-schemas.ts";
import { AddressThrottle, PLATFORM_RATE } from "../../gateway/read-model/throttles.ts";
import {
  COMPANION_SCOPES,
  DISPLAY_SCOPES,
  type GatewayWorld,
  startGatewayWorld,
  type TestStation,
} from "./gateway-world.ts";
import { sendRaw } from "./raw-request.ts";

function faulty(name: string, handler: () => Promise<never>): Route {
  const facts = { method: "GET", path: `/${name}/`, operation: name, tag: "service", summary: name } as const;
  return route({ ...facts, who: anyone, replies: {}, errors: [], handler });
}

const routes = [
  faulty("throws", () => Promise.reject(new Error("the password is hunter2"))),
  faulty("never-answers", () => new Promise(() => undefined)),
];

let logged = "";
const sink = new Writable({
  write(chunk, _encoding, done) {
    logged += String(chunk);
    done();
  },
});
let server: Server;
let baseUrl: string;
let world: GatewayWorld;
let station: TestStation;
beforeAll(async () => {
  world = await startGatewayWorld();
  station = await world.openStation(1);
  // These routes need no other part of the gateway, so the other parts are missing.
  const platformCheck = new PlatformCheck(undefined, new AddressThrottle(PLATFORM_RATE));
  const pipeline = {
    log: pino({ level: "info" }, sink),
    handlerDeps: {} as HandlerDeps,
    platformCheck,
  } as PipelineDeps;
  const clientAddress = createClientAddress({ trustedProxies: [], isTls: false });
  const metrics = new RequestMetrics(undefined);
  const connectionBounds = { inAll: 1_000, perAddress: 500 };
  const polls = {} as ServerDeps["polls"];
  server = new Server({ pipeline, polls, connectionBounds, clientAddress, tls: undefined, metrics }, routes);
  baseUrl = `http://127.0.0.1:${server.listen({ host: "127.0.0.1", port: 0, shared: false })}`;
});
afterAll(async () => {
  await server.stop();
  await world.stop();
});

async function ask(path: string): Promise<{ status: number; code: string; requestId: string; text: string }> {
  const response = await fetch(baseUrl + path);
  const text = await response.text();
  const body = errorBodySchema.parse(JSON.parse(text));
  return { status: response.status, code: body.code, requestId: body.request_id, text };
}

describe.concurrent("a handler that fails or hangs", () => {
  it("an unexpected error: 500 without its text, and the log has the error with the request id", async () => {
    const { status, code, requestId, text } = await ask("/throws/");
    expect([status, code]).toEqual([500, "internal_error"]);
    expect(text).not.toContain("hunter2");
    const line = logged.split("\n").find((each) => each.includes(requestId) && each.includes("hunter2"));
    expect(line).toContain("time-limits.test.ts");
  });

  it("no answer: 503 after twelve seconds", async () => {
    const startedAtMs = performance.now();
    const { status, code } = await ask("/never-answers/");
    expect([status, code]).toEqual([503, "unavailable"]);
    expect(performance.now() - startedAtMs).toBeGreaterThan(11_500);
    expect(performance.now() - startedAtMs).toBeLessThan(14_000);
  });
});

describe.concurrent("a body that arrives slowly", () => {
  it("longer than five seconds: 408, and the connection ends", async () => {
    const credential = await world.credential(station.companionId, 1, COMPANION_SCOPES);
    const head = [
      "POST /api/payments/v1/devices/assignment/report/ HTTP/1.1",
      "Host: x",
      `Authorization: Bearer ${credential}`,
      "Content-Type: application/json",
      "Content-Length: 100",
      "\r\n",
    ].join("\r\n");
    const pieces = [head, ...Array<string>(12).fill("{")];
    const answer = await sendRaw(world.gateway.port, pieces, { pauseMs: 500, waitMs: 9_000 });
    expect([answer.status, answer.isClosed]).toEqual([408, true]);
    expect(answer.elapsedMs).toBeGreaterThan(4_900);
    expect(answer.elapsedMs).toBeLessThan(7_000);
    expect(JSON.parse(answer.body)).toMatchObject({ code: "request_timeout" });
  });
});

describe.concurrent("an idle connection", () => {
  const DISPLAY = "/api/payments/v1/devices/display/";
  /** Sends a text, and then nothing more, until the gateway ends the connection. */
  const sendAndIdle = (text: string) => sendRaw(world.gateway.port, [text], { answers: 2, waitMs: 20_000 });

  it("after any first request, complete or not: ended after some ten seconds", async () => {
    const authorization = `Authorization: Bearer ${await world.credential(station.displayId, 1, DISPLAY_SCOPES)}`;
    const head = (line: string, ...lines: string[]): string =>
      [`${line} HTTP/1.1`, "Host: x", ...lines, "\r\n"].join("\r\n");
    const shown = await sendRaw(world.gateway.port, [head(`GET ${DISPLAY}`, authorization)]);
    const ifNoneMatch = `If-None-Match: ${/ETag: (\S+)/.exec(shown.head)?.[1] ?? ""}`;
    const beat = head(
      "POST /api/payments/v1/devices/heartbeat/",
      authorization,
      "Content-Type: application/json",
      "Content-Length: 2",
    );
    const requests: [text: string, status: number][] = [
      [head("GET /healthz"), 200],
      [head("GET /nothing/"), 404],
      [head(`GET ${DISPLAY}`, authorization), 200],
      [head(`GET ${DISPLAY}`, authorization, ifNoneMatch), 304],
      [`${beat}{}`, 200],
      // No text, or an incomplete head: the server waits for the rest.
      ["", 0],
      [head("GET /healthz", "X-A: a\0b"), 0],
      [head("GET /healthz", "X-A: a\r\n b"), 0],
      ["GET /healthz HTTP/1.1\r\n\r\n", 0],
      ["GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: a\r\n", 0],
    ];
    const ended = await Promise.all(
      requests.map(async ([text]) => {
        const { status, isClosed, elapsedMs } = await sendAndIdle(text);
        return { text, status, isClosed, isInTime: elapsedMs > 4_000 && elapsedMs < 14_000 };
      }),
    );
    expect(ended).toEqual(requests.map(([text, status]) => ({ text, status, isClosed: true, isInTime: true })));
  });
});
