/** A flood of requests whose bodies never arrive: the gateway still serves known devices, sessions and monitors. */
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { bearer } from "../../support/live-socket.ts";
import { onlyWhere } from "../../support/only-where.ts";
import { type GatewayProcess, startGatewayProcess } from "../gateway-process.ts";
import { DISPLAY_SCOPES, type GatewayWorld, startGatewayWorld } from "../gateway-world.ts";

const ENROLL = "/api/payments/v1/devices/enroll/";
const HEARTBEAT = "/api/payments/v1/devices/heartbeat/";
/** What other systems cannot test: only Linux accepts each address of 127.0.0.0/8 as a local one. */
const BY_ADDRESS = "bodies that do not arrive, by address";

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

const sockets = new Set<Socket>();
let isFlooding = false;
afterEach(() => {
  isFlooding = false;
  for (const socket of sockets) socket.destroy();
  sockets.clear();
});

const head = (path: string, length: number, lines: readonly string[] = []): string =>
  [
    `POST ${path} HTTP/1.1`,
    "Host: x",
    "Content-Type: application/json",
    `Content-Length: ${length}`,
    ...lines,
    "",
    "",
  ].join("\r\n");

/** Sends a head without its body. When the server closes the connection, opens another one and does the same. */
function stall(address: string): void {
  const socket = connect({ port: gateway.port, host: "127.0.0.1", localAddress: address });
  sockets.add(socket);
  socket.on("error", () => undefined);
  socket.on("connect", () => socket.write(head(ENROLL, 40)));
  socket.on("close", () => {
    sockets.delete(socket);
    if (isFlooding) setTimeout(() => isFlooding && stall(address), 500);
  });
  socket.resume();
}

async function flood(addresses: readonly string[], each: number): Promise<void> {
  isFlooding = true;
  for (let count = 0; count < each; count += 1) {
    for (const address of addresses) stall(address);
    if (count % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await new Promise((resolve) => setTimeout(resolve, 300));
}

async function statusOf(method: string, path: string, headers: Record<string, string>): Promise<number> {
  const body = method === "POST" ? { body: "{}" } : {};
  const response = await fetch(`${gateway.baseUrl}${path}`, {
    method,
    headers: { connection: "close", "content-type": "application/json", ...headers },
    ...body,
    signal: AbortSignal.timeout(10_000),
  });
  await response.text();
  return response.status;
}

/** The statuses that two monitors, a device and a cashier receive, three times during a flood. */
async function servedStatuses(): Promise<number[][]> {
  const rounds: number[][] = [];
  for (let round = 0; round < 3; round += 1) {
    rounds.push([
      await statusOf("GET", "/healthz", {}),
      await statusOf("GET", "/readyz", {}),
      await statusOf("POST", HEARTBEAT, bearer(credential)),
      await statusOf("GET", "/api/cashier/v1/stations/1/lease/", bearer(session)),
    ]);
  }
  return rounds;
}
const SERVED = Array.from({ length: 3 }, () => [200, 200, 200, 200]);

describe.runIf(onlyWhere(process.platform === "linux", BY_ADDRESS))("thousands of bodies that never arrive", () => {
  it("sent from five addresses: monitors, a device and a cashier are served", async () => {
    await flood(["127.0.3.1", "127.0.3.2", "127.0.3.3", "127.0.3.4", "127.0.3.5"], 900);
    expect(await servedStatuses()).toEqual(SERVED);
  });

  it("sent from the device's and the cashier's address, above its limit: monitors, device and cashier are served", async () => {
    await flood(["127.0.0.1"], 1_100);
    expect(await servedStatuses()).toEqual(SERVED);
  });
});
