/**
 * Other addresses send a flood of wrong log-ins or invented enrollment codes. The system still serves a person at a known
 * address, a kill switch, cash, and a device with its code. The test compares their times with those without the flood.
 */
import { Agent, request } from "node:http";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { closeDatabase, type Database, openDatabase } from "../../../services/db/pool.ts";
import { HANGS } from "../../support/hangs.ts";
import { logIn, type Person } from "../../support/people.ts";
import { startSystem, type TestSystem } from "../../support/system.ts";

const CONNECTIONS = 300;
/** Each address has more than one connection, so that the flood also reaches the limits of an address. */
const ADDRESSES = 200;
/** The throttle allows this many enrollments of one address at once. After them, the flood uses another address. */
const ENROLLMENTS = 10;
const HOME = "127.0.0.5";
/** How much longer a request may take than without the flood, which runs on the same two cores. */
const LONGER = { times: 5, ms: 2_500 };
/** The other requests write fewer rows of `request_claims`. The flood must write none. */
const CLAIMS = 20;

let system: TestSystem;
let owner: Person;
let cashier: Person;
let withoutFlood: readonly Done[];
let sql: Database;

interface Done {
  readonly what: string;
  readonly statuses: string;
  readonly ms: number;
}

beforeAll(async () => {
  system = await startSystem();
  sql = openDatabase({ url: system.database.url, maxConnections: 1 });
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  await cashier.good("POST", `stations/${stationId(1)}/lease/`);
  await useAll();
  withoutFlood = await useAll();
});
afterAll(async () => {
  await closeDatabase(sql);
  await system.stop();
});

const claims = async (): Promise<number> => (await sql`select from request_claims`).length;

const stationId = (nth: number): number => system.sandbox.stations[nth]?.stationId as number;

interface Sent {
  readonly path: string;
  readonly body: object;
  readonly from: string;
  readonly cookie?: string;
}

const LOG_IN = "/api/cashier/v1/session/";
const ENROLL = "/api/payments/v1/devices/enroll/";

/** Resolves to the status of the answer, or to "no answer". */
function post(agent: Agent, { path, body, from, cookie }: Sent): Promise<string> {
  return new Promise((resolve) => {
    const text = JSON.stringify(body);
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
      ...(cookie === undefined ? {} : { cookie }),
    };
    const outgoing = request(new URL(path, system.baseUrl), { method: "POST", agent, localAddress: from, headers });
    outgoing.on("response", (response) => response.resume().on("end", () => resolve(String(response.statusCode))));
    outgoing.on("error", () => resolve("no answer"));
    outgoing.end(text);
  });
}

/** Does in turn what people and devices do, and measures each step. */
async function useAll(code?: string): Promise<Done[]> {
  const done: Done[] = [];
  const note = async (what: string, work: () => Promise<string>): Promise<void> => {
    const startedAtMs = performance.now();
    const statuses = await work();
    done.push({ what, statuses, ms: Math.round(performance.now() - startedAtMs) });
  };
  await note("sign-in", () => post(new Agent(), { path: LOG_IN, body: system.cashier, from: HOME }));
  await note("kill switch", () => freeze(true));
  await note("cash", sellForCash);
  await note("kill switch", () => freeze(false));
  if (code !== undefined) {
    await note("enrollment", () => post(new Agent(), { path: ENROLL, body: { code }, from: HOME }));
  }
  return done;
}

async function freeze(isOn: boolean): Promise<string> {
  const path = `stations/${stationId(0)}/${isOn ? "freeze" : "unfreeze"}/`;
  const { status } = await owner.call("POST", path, { body: { reason: "a test" } });
  return String(status);
}

/** Opens an order, collects it in cash and attests. Returns the three statuses. */
async function sellForCash(): Promise<string> {
  const station = `stations/${stationId(1)}`;
  const lines = [{ name: "Soup", quantity: 1, unit_amount: "9.00" }];
  const order = await cashier.call<{ order_id: number }>("POST", `${station}/orders/`, { body: { lines } });
  const body = { order_id: order.body.order_id, route: "cash" };
  const intent = await cashier.call<{ intent_id: number }>("POST", `${station}/intents/`, { body });
  const paid = await cashier.call("POST", `${station}/intents/${intent.body.intent_id}/attest/`);
  return `${order.status} ${intent.status} ${paid.status}`;
}

/** Sends from many connections until `during` ends. Each connection sends again after each answer. */
async function flood<T>(attack: (sender: number, nth: number) => Sent, during: () => Promise<T>): Promise<T> {
  const stopping = new AbortController();
  const claimsBefore = await claims();
  let answers = 0;
  const senders = Array.from({ length: CONNECTIONS }, async (_, sender) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let nth = 0; !stopping.signal.aborted; nth += 1) {
      await post(agent, attack(sender, nth));
      answers += 1;
    }
    agent.destroy();
  });
  try {
    // There are as many answers as connections, so the whole flood has begun before `during` does.
    await vi.waitUntil(() => answers >= CONNECTIONS, HANGS);
    return await during();
  } finally {
    stopping.abort();
    await Promise.all(senders);
    expect((await claims()) - claimsBefore).toBeLessThan(CLAIMS);
  }
}

function expectServed(done: readonly Done[]): void {
  const expected: Record<string, string> = {
    "sign-in": "200",
    "kill switch": "200",
    cash: "201 201 200",
    enrollment: "201",
  };
  const quietMs = Math.max(...withoutFlood.map(({ ms }) => ms));
  for (const { what, statuses, ms } of done) {
    expect(`${what} ${statuses}`).toBe(`${what} ${expected[what]}`);
    expect(ms, what).toBeLessThan(quietMs * LONGER.times + LONGER.ms);
  }
}

const wrong = (sender: number, nth: number) => ({
  path: LOG_IN,
  from: `127.0.1.${1 + (sender % ADDRESSES)}`,
  body: { email: `unknown-${sender}-${nth}@example.com`, password: "wrong password" },
});

describe("a flood of log-ins or enrollments", () => {
  it("wrong log-ins: people are served", async () => {
    expectServed(await flood(wrong, () => useAll()));
  });

  it("wrong log-ins with invented browser tokens at a gateway that has just started: people are served", async () => {
    await system.processes.gateway.kill9();
    await system.processes.gateway.restart();
    const token = (text: string): string => text.padEnd(22, "x").slice(0, 22);
    const attack = (sender: number, nth: number) => ({
      ...wrong(sender, nth),
      cookie: `dp_browser=${token(`${sender}-${nth}`)}`,
    });
    expectServed(await flood(attack, () => useAll()));
  });

  it("invented enrollment codes: people and a device with its code are served", async () => {
    const code = system.sandbox.stations[1]?.devices[0]?.enrollmentCode as string;
    const attack = (sender: number, nth: number) => ({
      path: ENROLL,
      from: `127.${1 + Math.floor(nth / ENROLLMENTS)}.${1 + Math.floor(sender / ADDRESSES)}.${1 + (sender % ADDRESSES)}`,
      body: { code: "00000-00000" },
    });
    expectServed(await flood(attack, () => useAll(code)));
  });
});
