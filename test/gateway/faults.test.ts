/** What a client receives when a handler fails or hangs: the usual error body, without internal details. */
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
beforeAll(() => {
  // These routes have no caller and need no other part, so the other parts are missing.
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
afterAll(() => server.stop());

async function ask(path: string): Promise<{ status: number; code: string; requestId: string; text: string }> {
  const response = await fetch(baseUrl + path);
  const text = await response.text();
  const body = errorBodySchema.parse(JSON.parse(text));
  return { status: response.status, code: body.code, requestId: body.request_id, text };
}

describe("a handler that fails", () => {
  it("with an unexpected error: 500 without its text, and the log contains the error with the request id", async () => {
    const { status, code, requestId, text } = await ask("/throws/");
    expect([status, code]).toEqual([500, "internal_error"]);
    expect(text).not.toContain("hunter2");
    const line = logged.split("\n").find((each) => each.includes(requestId) && each.includes("hunter2"));
    expect(line).toContain("faults.test.ts");
  });

  it("by never answering: 503 after twelve seconds", async () => {
    const startedAtMs = performance.now();
    const { status, code } = await ask("/never-answers/");
    expect([status, code]).toEqual([503, "unavailable"]);
    expect(performance.now() - startedAtMs).toBeGreaterThan(11_500);
    expect(performance.now() - startedAtMs).toBeLessThan(14_000);
  });
});
