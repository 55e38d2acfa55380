/**
 * Random requests to the whole system: no answer is a 5xx, no process ends, and every answer is documented. In the long form,
 * `npm run soak`, the test sends 10,000 (RANDOM_REQUESTS).
 */
import { hash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { enrollDevice } from "../support/devices.ts";
import { addFleet, offerTask, type TestFleet } from "../support/fleets.ts";
import { type Answer, send } from "../support/http.ts";
import { addOperator, logIn } from "../support/people.ts";
import { startSystem, type TestSystem } from "../support/system.ts";
import { type RandomRequest, RandomRequests } from "./random-request.ts";
import { sendRaw } from "./raw-request.ts";

const REQUESTS = Number(process.env.RANDOM_REQUESTS ?? 400);
const AT_ONCE = 16;
/**
 * RANDOM_SEED sets another seed. The same seed sends the same requests until a route is added. Then choose a seed whose 400
 * requests get all kinds of answers.
 */
const SEED = Number(process.env.RANDOM_SEED ?? 4);
/** So many credentials that none of them is throttled. */
const CREDENTIALS_PER_DEVICE = 200;
const FLEETS = Math.min(40, REQUESTS / 40);

let system: TestSystem;
let requests: RandomRequests;

beforeAll(async () => {
  system = await startSystem({ sandboxProvider: true, webhookSigner: true });
  const [owner, cashier] = await Promise.all([
    logIn(system.baseUrl, "backoffice", system.owner),
    logIn(system.baseUrl, "cashier", system.cashier),
  ]);
  const [first] = system.sandbox.stations;
  const stationId = first?.stationId as number;
  const spare = await owner.good<{ station_id: number }>("POST", "stations/", {
    body: { filial_id: system.sandbox.filialId, name: "Spare", currency: "EUR" },
  });
  const spareDevice = await owner.good<{ device_id: number }>("POST", "devices/", {
    body: { station_id: spare.station_id, name: "Spare", kind: "customer_display" },
  });
  const spareUser = await owner.good<{ user_id: number }>("POST", "users/", {
    body: { email: "spare@sandbox.example", name: "Spare", role: "cashier", password: "a spare password" },
  });
  const rita = await addOperator(system.baseUrl, owner);
  const statements = { provider: "bank", reference: "DE-1", name: "Bank", mode: "test" };
  const { account_id } = await rita.good<{ account_id: number }>("POST", "accounts/", { body: statements });
  await cashier.good("POST", `stations/${stationId}/lease/`);
  const devices = first?.devices ?? [];
  // Only an enrolled device has a credential: the station answers the report of another one later.
  for (const { enrollmentCode } of devices) await enrollDevice(system.baseUrl, enrollmentCode ?? "");
  const credentials = (await Promise.all(devices.map(({ deviceId }) => manyCredentials(deviceId, stationId)))).flat();
  const { filialId } = system.sandbox;
  // The fleets are added in turn. On a busy machine, all at once would take longer than the gateway waits for an answer.
  const fleets: TestFleet[] = [];
  const tasks: Awaited<ReturnType<typeof offerTask>>[] = [];
  for (let count = 0; count < FLEETS; count += 1) {
    const fleet = await addFleet(system.baseUrl, owner, filialId);
    fleets.push(fleet);
    tasks.push(await offerTask(owner, fleet));
  }
  requests = new RandomRequests(SEED, {
    tokens: {
      payments: credentials,
      cashier: [cashier.token],
      backoffice: [owner.token],
      reconciliation: [rita.token],
      robotics: fleets.map(({ credential }) => credential),
    },
    ids: {
      consumer_id: fleets.map(({ consumerId }) => consumerId),
      task_id: tasks.map(({ task_id }) => task_id),
      filial_id: [filialId],
      delivery_id: [1, 2, 3, 4, 5, 6, 7, 8],
      endpoint_id: [1],
      station_id: [stationId],
      device_id: [...devices.map(({ deviceId }) => deviceId), spareDevice.device_id],
      order_id: [1, 2, 3, 4, 5, 6, 7, 8],
      intent_id: [1, 2, 3, 4, 5, 6, 7, 8],
      code_id: [1, 2, 3],
      user_id: [spareUser.user_id],
      account_id: [account_id],
    },
    spareIds: {
      station_id: [spare.station_id],
      device_id: [spareDevice.device_id],
      code_id: [1, 2],
      order_id: [1, 2],
      user_id: [spareUser.user_id],
    },
  });
});
afterAll(() => system.stop());

async function manyCredentials(deviceId: number, stationId: number): Promise<string[]> {
  const scopes = ["device:read", "device:heartbeat", "assignment:read", "assignment:report", "display:read"];
  return Promise.all(
    Array.from({ length: CREDENTIALS_PER_DEVICE }, async () => {
      const credential = `dp_00_${randomBytes(32).toString("base64url")}`;
      const key = `$KV.CREDENTIALS.${hash("sha256", credential, "hex")}`;
      await system.bus.js.publish(key, JSON.stringify({ deviceId, stationId, scopes }));
      return credential;
    }),
  );
}

/** Resolves to undefined when the HTTP client refuses to send the request. */
async function sendRandom(request: RandomRequest): Promise<Answer | undefined> {
  const { method, headers, body } = request;
  let url: URL;
  try {
    // This is the path that the client sends after it has resolved `..`.
    url = new URL(new Request(system.baseUrl + request.path, { method, headers, body: body ?? null }).url);
  } catch {
    return undefined;
  }
  return send(system.baseUrl, method, url.pathname + url.search, { headers, ...(body === undefined ? {} : { body }) });
}

/** The statuses of more requests at once than one credential may send. */
async function throttledStatuses(): Promise<number[]> {
  const [device] = system.sandbox.stations[0]?.devices ?? [];
  const [token = ""] = await manyCredentials(device?.deviceId ?? 0, system.sandbox.stations[0]?.stationId ?? 0);
  const pending = Array.from({ length: 30 }, () =>
    send(system.baseUrl, "GET", "/api/payments/v1/devices/me/", { token }),
  );
  return (await Promise.all(pending)).map(({ status }) => status);
}

/** The status for a client that already has the document. Few routes have tags, so random tags rarely match. */
async function unchangedStatus(): Promise<number> {
  const headers = { "if-none-match": "*" };
  return (await send(system.baseUrl, "GET", "/openapi.json", { headers })).status;
}

describe("the whole system", () => {
  it(`${REQUESTS} random requests (RANDOM_SEED=${SEED}): no 5xx, and every answer is documented`, async () => {
    const pids = Object.values(system.processes).map((each) => each.pid());
    const statuses = new Map<number, number>();
    const bad: string[] = [];
    let sent = 0;
    const worker = async (): Promise<void> => {
      while (sent < REQUESTS) {
        const request = requests.next();
        const answer = await sendRandom(request);
        if (answer === undefined) continue;
        sent += 1;
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        if (answer.status >= 500) bad.push(`${request.method} ${request.path} ${request.body} → ${answer.text}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    // The speed of the machine decides whether random requests are throttled. So these requests make sure of 429 and 304.
    for (const status of [...(await throttledStatuses()), await unchangedStatus()])
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    expect(bad.slice(0, 10), `RANDOM_SEED=${SEED}`).toEqual([]);
    // There are answers of all kinds, most of them from handlers.
    for (const status of [200, 201, 304, 400, 401, 403, 404, 405, 409, 413, 415, 429]) {
      expect(statuses.get(status) ?? 0, `${status} in ${JSON.stringify([...statuses])}`).toBeGreaterThan(0);
    }
    expect(statuses.get(200)).toBeGreaterThan(REQUESTS / 4);
    expect(Object.values(system.processes).map((each) => each.pid())).toEqual(pids);
    expect((await send(system.baseUrl, "GET", "/readyz")).status).toBe(200);
    expect(system.log("gateway")).not.toContain("failed unexpectedly");
  }, 180_000);

  it("bytes that are not HTTP: end their connection, and the gateway still answers others", async () => {
    const port = Number(new URL(system.baseUrl).port);
    const line = "GET /healthz HTTP/1.1\r\nHost: x\r\n";
    const odd = [
      ...Array.from({ length: 200 }, () => randomBytes(1 + Math.floor(Math.random() * 300))),
      "\r\n\r\n\r\n",
      "GET\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      `${line}Content-Length: -5\r\n\r\n`,
      `${line}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello`,
      `${line}Transfer-Encoding: chunked\r\n\r\nZZZ\r\n`,
      `${line}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n`,
      `${line}X: ${"y".repeat(10_000)}\r\n\r\n`,
      `${line}${"X: y\r\n".repeat(500)}\r\n`,
      `POST /api/payments/v1/devices/enroll/ HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{`,
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ];
    await Promise.all(odd.map((bytes) => sendRaw(port, [bytes], { waitMs: 300, endAfter: true })));
    expect((await send(system.baseUrl, "GET", "/healthz")).status).toBe(200);
  });
});
