/** Ports, settings and shutdown: a gateway that stops finishes its running requests, accepts no new ones, and exits with 0. */

import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { get } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readGatewaySettings } from "../../gateway/settings.ts";
import { UserError } from "../../services/runtime/user-error.ts";
import { Link } from "../cluster/link.ts";
import { freePort } from "../support/free-port.ts";
import { send } from "../support/http.ts";
import { onlyWhere } from "../support/only-where.ts";
import { startGatewayProcess } from "./gateway-process.ts";
import { COMPANION_SCOPES, type GatewayWorld, startGatewayWorld } from "./gateway-world.ts";
import { type RawAnswer, sendRaw } from "./raw-request.ts";

let world: GatewayWorld;
let credential: string;
beforeAll(async () => {
  world = await startGatewayWorld();
  const station = await world.openStation(1);
  credential = await world.credential(station.companionId, 1, COMPANION_SCOPES);
});
afterAll(() => world.stop());

function refusesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(false));
    socket.once("error", () => resolve(true));
    socket.once("close", () => socket.destroy());
  });
}

describe("a shutdown of the gateway", () => {
  it("a running request: finished; its answer announces the end of the connection, and no new one is accepted", async () => {
    const gateway = await startGatewayProcess(world.nats.url);
    const request = [
      "POST /api/payments/v1/devices/heartbeat/ HTTP/1.1",
      "Host: x",
      `Authorization: Bearer ${credential}`,
      "Content-Type: application/json",
      "Content-Length: 2",
      "",
      "",
    ].join("\r\n");
    // The last byte of the body follows the signal, so the request is running when the signal arrives.
    const answer = sendRaw(gateway.port, [`${request}{`, "}"], { pauseMs: 2_000, waitMs: 10_000 });
    await delay(500);
    const ended = gateway.stop();
    await expect.poll(() => refusesConnections(gateway.port)).toBe(true);
    const { status, head, isClosed } = await answer;
    expect([status, isClosed]).toEqual([200, true]);
    expect(head.toLowerCase()).toContain("\r\nconnection: close");
    expect(await ended).toBe(0);
  });

  it("a body that never ends: dropped after a limited time", async () => {
    const gateway = await startGatewayProcess(world.nats.url);
    const request = [
      "POST /api/payments/v1/devices/heartbeat/ HTTP/1.1",
      "Host: x",
      `Authorization: Bearer ${credential}`,
      "Content-Type: application/json",
      "Content-Length: 1000",
      "",
      "{",
    ].join("\r\n");
    const answer = sendRaw(gateway.port, [request], { waitMs: 9_000 });
    await delay(200);
    const startedAtMs = performance.now();
    expect(await gateway.stop()).toBe(0);
    expect(performance.now() - startedAtMs).toBeLessThan(7_000);
    expect((await answer).isClosed).toBe(true);
  });

  it("unknown callers that wait for a proof: each gets an answer", async () => {
    const link = await Link.open(world.nats.port);
    const url = new URL(world.nats.url);
    url.port = String(link.port);
    const gateway = await startGatewayProcess(url.href);
    const ask = (path: string, headers: readonly string[] = []): Promise<RawAnswer> => {
      const lines = [`GET ${path} HTTP/1.1`, "Host: x", "Authorization: Bearer of_nobody", ...headers, "\r\n"];
      return sendRaw(gateway.port, [lines.join("\r\n")]);
    };
    const upgrade = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"];
    try {
      link.cut(["back"]);
      const answers = [
        ask("/api/payments/v1/devices/me/"),
        ask("/api/cashier/v1/stations/1/live/", [...upgrade, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]),
      ];
      await delay(200);
      const ended = gateway.stop();
      expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([503, 503]);
      link.join();
      expect(await ended).toBe(0);
    } finally {
      await link.close();
    }
  });

  it("idle connections: closed at once", async () => {
    const gateway = await startGatewayProcess(world.nats.url);
    const idle = connect(gateway.port, "127.0.0.1");
    const closed = new Promise((resolve) => idle.once("close", resolve));
    idle.on("error", () => undefined);
    idle.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    await new Promise((resolve) => idle.once("data", resolve));
    const startedAtMs = performance.now();
    expect(await gateway.stop()).toBe(0);
    await closed;
    expect(performance.now() - startedAtMs).toBeLessThan(2_000);
  });
});

describe("the port of a gateway", () => {
  it("a port in use: the second gateway ends with one sentence and a code", async () => {
    const gateway = await startGatewayProcess(world.nats.url);
    const second = await startGatewayProcess(world.nats.url, { PORT: String(gateway.port) }).catch(
      (error: unknown) => error,
    );
    expect(second).toBeInstanceOf(UserError);
    expect(second).toMatchObject({
      code: "port_taken",
      message: `The gateway cannot listen on port ${gateway.port} of 127.0.0.1: another program listens there, or this user has no right to. End that program, or set PORT and HOST to others.`,
    });
    await gateway.stop();
  });

  it.runIf(onlyWhere(process.platform === "linux", "several gateways on one port"))(
    "SHARED_PORT: several gateways share one port",
    async () => {
      const environment = { SHARED_PORT: "true", PORT: String(await freePort()) };
      const first = await startGatewayProcess(world.nats.url, environment);
      const second = await startGatewayProcess(world.nats.url, environment);
      const ids = new Set<string>();
      for (let round = 0; round < 40; round += 1) {
        const answer = await send(first.baseUrl, "GET", "/healthz", { headers: { connection: "close" } });
        ids.add((answer.headers.get("x-request-id") as string).split("-")[0] as string);
      }
      // Each process has another prefix in its request ids.
      expect(ids.size).toBe(2);
      await first.stop();
      expect((await send(second.baseUrl, "GET", "/healthz")).status).toBe(200);
      await second.stop();
    },
  );
});

const tlsFile = (name: string): string => join(import.meta.dirname, "tls", name);

describe("TLS at the gateway itself", () => {
  it("HTTPS: an answer with the header that makes browsers use HTTPS only", async () => {
    // Only this test uses this certificate for localhost.
    const environment = { TLS_KEY_FILE: tlsFile("key.pem"), TLS_CERT_FILE: tlsFile("cert.pem") };
    const gateway = await startGatewayProcess(world.nats.url, environment);
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const options = {
        port: gateway.port,
        host: "127.0.0.1",
        path: "/healthz",
        ca: readFileSync(tlsFile("cert.pem")),
      };
      get(options, resolve).once("error", reject);
    });
    answer.resume();
    expect(answer.statusCode).toBe(200);
    expect(answer.headers["strict-transport-security"]).toBe("max-age=31536000");
    await gateway.stop();
  });
});

describe("invalid settings", () => {
  it("an invalid port: the process ends with a sentence that names PORT", async () => {
    const failed = await startGatewayProcess(world.nats.url, { PORT: "70000" }).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(UserError);
    expect(failed).toMatchObject({ code: "invalid_setting", message: expect.stringContaining("PORT") as string });
  });

  it.each([
    [{ PORT: "70000" }, "PORT"],
    [{ PORT: "x" }, "PORT"],
    [{ SHARED_PORT: "maybe" }, "SHARED_PORT"],
    [{ TRUSTED_PROXIES: "10.0.0.0/33" }, "TRUSTED_PROXIES"],
    [{ TRUSTED_PROXIES: "proxy.example" }, "TRUSTED_PROXIES"],
    [{ TLS_KEY_FILE: "key.pem" }, "TLS_KEY_FILE"],
    [{ TLS_KEY_FILE: tlsFile("key.pem"), TLS_CERT_FILE: tlsFile("nope.pem") }, "TLS_CERT_FILE"],
    [{ TLS_KEY_FILE: tlsFile("cert.pem"), TLS_CERT_FILE: tlsFile("cert.pem") }, "TLS_KEY_FILE"],
  ])("%o: the error names the setting", (environment: NodeJS.ProcessEnv, name) => {
    const invalid = { code: "invalid_setting", message: expect.stringContaining(name) as string };
    expect(() => readGatewaySettings({ NATS_URL: world.nats.url, ...environment })).toThrow(
      expect.objectContaining(invalid) as Error,
    );
  });
});
