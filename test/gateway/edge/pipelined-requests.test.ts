/** A client sends requests without waiting for the answers. They must not block the event loop. */
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { send } from "../../support/http.ts";
import { type GatewayProcess, startGatewayProcess } from "../gateway-process.ts";
import { DISPLAY_SCOPES, type GatewayWorld, startGatewayWorld } from "../gateway-world.ts";
import { sendRaw } from "../raw-request.ts";

const DISPLAY = "/api/payments/v1/devices/display/";
const ENROLL = "/api/payments/v1/devices/enroll/";
const LIVE = "/api/cashier/v1/stations/1/live/";

let world: GatewayWorld;
let gateway: GatewayProcess;
let credential: string;
let session: string;
beforeAll(async () => {
  world = await startGatewayWorld();
  const station = await world.openStation(1);
  gateway = await startGatewayProcess(world.nats.url);
  credential = await world.credential(station.displayId, 1, DISPLAY_SCOPES);
  session = await world.session();
});
afterAll(async () => {
  await gateway.stop();
  await world.stop();
});

const request = (first: string, lines: readonly string[] = []): string =>
  [`${first} HTTP/1.1`, "Host: x", ...lines, "", ""].join("\r\n");

/** Sends the requests in one piece on one connection, and counts the answers. */
async function answersTo(requests: string): Promise<{ answers: number; isClosed: boolean }> {
  const { head, body, isClosed } = await sendRaw(world.gateway.port, [requests], { waitMs: 2_000 });
  return { answers: `${head}\r\n\r\n${body}`.split("HTTP/1.1 ").length - 1, isClosed };
}

describe("many requests in one piece on one connection", () => {
  it.each([
    ["a file's path", () => request("GET /healthz")],
    ["a path that does not exist", () => request("GET /nothing/")],
    ["a method that a path does not have", () => request("PUT /healthz", ["Content-Length: 0"])],
    ["OPTIONS", () => request("OPTIONS /healthz")],
    ["HEAD", () => request("HEAD /healthz")],
    ["a head that is not valid", () => request("GET /healthz", ["Host: y"])],
    ["a poll without a credential", () => request(`GET ${DISPLAY}`)],
    ["a poll with a wrong credential", () => request(`GET ${DISPLAY}`, ["Authorization: Bearer x"])],
    ["a body that is not valid", () => `${request(`POST ${ENROLL}`, ["Content-Length: 2"])}{}`],
    ["a live socket without a handshake", () => request(`GET ${LIVE}`, ["Sec-WebSocket-Key: x"])],
    [
      "a session's read from memory",
      () => request("GET /api/cashier/v1/session/", [`Authorization: Bearer ${session}`]),
    ],
  ])("%s, 100 times: at most one is answered, and the connection ends", async (_name, one) => {
    const { answers, isClosed } = await answersTo(one().repeat(100));
    expect([answers <= 1, isClosed]).toEqual([true, true]);
  });

  it("a device's polls: those within its throttle are answered, and the connection ends", async () => {
    const poll = request(`GET ${DISPLAY}`, [`Authorization: Bearer ${credential}`]);
    const { answers, isClosed } = await answersTo(poll.repeat(100));
    expect([answers <= 12, isClosed]).toEqual([true, true]);
  });

  it("2,000 requests on each of 200 connections: a request of another client is answered within a second", async () => {
    const sockets: Socket[] = [];
    for (let count = 0; count < 200; count += 1) {
      const socket = connect(gateway.port, "127.0.0.1");
      socket.on("error", () => undefined);
      socket.pause();
      socket.write(request("GET /healthz").repeat(2_000));
      sockets.push(socket);
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
    const startedAtMs = performance.now();
    expect((await send(gateway.baseUrl, "GET", "/healthz")).status).toBe(200);
    expect(performance.now() - startedAtMs).toBeLessThan(1_000);
    for (const socket of sockets) socket.destroy();
  });
});

describe("several requests in turn on one connection", () => {
  it("each waits for the answer before it: all kinds of requests are answered", async () => {
    const requests = [
      request("GET /healthz"),
      request(`GET ${DISPLAY}`, ["Authorization: Bearer x"]),
      request("GET /nothing/"),
      `${request(`POST ${ENROLL}`, ["Content-Type: application/json", "Content-Length: 2"])}{}`,
      request("GET /healthz"),
    ];
    const socket = connect(world.gateway.port, "127.0.0.1");
    const statuses: number[] = [];
    for (const one of requests) {
      socket.write(one);
      const answer = await new Promise<string>((resolve) => socket.once("data", (chunk) => resolve(String(chunk))));
      statuses.push(Number(answer.slice(9, 12)));
    }
    socket.destroy();
    expect(statuses).toEqual([200, 401, 404, 400, 200]);
  });
});
