/**
 * A gateway that is cut off while the other processes work: an order is paid, a device is revoked, and this gateway receives
 * no change. It may answer with its old state for a second and a half. After that, it answers that its state is too old
 * (design §2.2, I8). `test/gateway/stale-replica.test.ts` has a bus that is stalled for all processes.
 */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type GatewayProcess, startGatewayProcess } from "../gateway/gateway-process.ts";
import { addDevice, type TestDevice } from "../support/devices.ts";
import { type Refused, send } from "../support/http.ts";
import { logIn, newOrder, type Person } from "../support/people.ts";
import { startSystem, type TestSystem } from "../support/system.ts";
import { type StallProxy, startStallProxy } from "./stall-proxy.ts";

/** How long a gateway may use old state (design §2.2), and how late a test on a busy machine may be. */
const BELIEVED_MS = 1_500;
const LATE_MS = 250;
/** So many displays poll in turn, so that each stays within its throttle: ten polls at once, then one a second. */
const DISPLAYS = 8;
const POLL_EVERY_MS = 50;
/** The smallest number of polls in each phase. A less busy machine makes more. */
const LEAST_POLLS = 3;
/** The state changes this long before the end of the silence. */
const CHANGE_BEFORE_END_MS = 1_000;
const RECOVERED_WITHIN_MS = 10_000;

let system: TestSystem;
let owner: Person;
let cashier: Person;
let station: string;
let displays: TestDevice[];
let proxy: StallProxy;
let cutOff: GatewayProcess;

beforeAll(async () => {
  system = await startSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  const stationId = system.sandbox.stations[0]?.stationId ?? 0;
  station = `stations/${stationId}`;
  await cashier.good("POST", `${station}/lease/`);
  displays = [];
  for (let index = 0; index < DISPLAYS; index += 1) displays.push(await newDisplay(stationId));
  proxy = await startStallProxy(system.nats.url);
  cutOff = await startGatewayProcess(proxy.url);
});
afterAll(async () => {
  proxy.resume();
  await cutOff.stop();
  await proxy.stop();
  await system.stop();
});

async function newDisplay(stationId: number): Promise<TestDevice> {
  const facts = { station_id: stationId, name: "Display", kind: "customer_display" };
  return await addDevice(system.baseUrl, owner, facts);
}

interface Seen {
  readonly atMs: number;
  /** How much longer the answer took than an answer of the same gateway at the same moment that needs no feed. */
  readonly waitedMs: number;
  readonly status: number;
  /** A display's state and amount, or the code of a refusal. */
  readonly answer: string;
  readonly display: number;
}

/** Polls the cut-off gateway with one display after another, until the signal aborts. */
async function watch(seen: Seen[], signal: AbortSignal): Promise<void> {
  const underWay: Promise<void>[] = [];
  for (let turn = 0; !signal.aborted; turn += 1) {
    const display = turn % DISPLAYS;
    underWay.push(poll(seen, display));
    await delay(POLL_EVERY_MS);
  }
  await Promise.all(underWay);
}

async function poll(seen: Seen[], display: number): Promise<void> {
  const atMs = performance.now();
  const control = send(cutOff.baseUrl, "GET", "/healthz").then(() => performance.now() - atMs);
  const { status, body } = await send<{ state: string; amount: string } & Refused>(
    cutOff.baseUrl,
    "GET",
    "/api/payments/v1/devices/display/",
    { token: displays[display]?.credential ?? "" },
  );
  const tookMs = performance.now() - atMs;
  const answer = status === 200 ? `${body.state} ${body.amount}` : body.code;
  seen.push({ atMs, waitedMs: tookMs - (await control), status, answer, display });
}

const openOrder = (price: string): Promise<number> => newOrder(cashier, station, price);

/** Through the other gateway, pays the order and revokes a display. */
async function payAndRevoke(orderId: number, revoked: number): Promise<void> {
  const body = { order_id: orderId, route: "cash" };
  const { intent_id } = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, { body });
  await cashier.good("POST", `${station}/intents/${intent_id}/attest/`);
  await owner.good("POST", `devices/${displays[revoked]?.deviceId}/revoke/`);
}

/** The first round revokes the first display and the second round the second. */
describe.each([
  { silence: "3 s, and the connection stays", silentMs: 3_000, revoked: 0, price: "11.00" },
  { silence: "9 s, and the gateway connects again", silentMs: 9_000, revoked: 1, price: "12.00" },
])("a gateway without its feed: $silence", ({ silentMs, revoked, price }) => {
  it("is answered with 503 within 1.5 s, never with old state, and ends soon after", async () => {
    const orderId = await openOrder(price);
    const seen: Seen[] = [];
    const watching = new AbortController();
    const watched = watch(seen, watching.signal);
    await expect.poll(() => seen.at(-1)?.answer, { timeout: 15_000 }).toBe(`total ${price}`);

    proxy.stall();
    const stalledAtMs = performance.now();
    await delay(BELIEVED_MS + LATE_MS);
    const refused = await send<Refused>(cutOff.baseUrl, "GET", "/api/cashier/v1/session/", { token: cashier.token });
    // The change comes so late that the proxy first delivers many old heartbeats.
    await delay(silentMs - CHANGE_BEFORE_END_MS - (performance.now() - stalledAtMs));
    await payAndRevoke(orderId, revoked);
    await delay(silentMs - (performance.now() - stalledAtMs));
    proxy.resume();
    const resumedAtMs = performance.now();
    const isBack = () => seen.some(({ atMs, status }) => atMs > resumedAtMs && status === 200);
    await expect.poll(isBack, { timeout: RECOVERED_WITHIN_MS }).toBe(true);
    await delay(1_000);
    watching.abort();
    await watched;

    expect(refused).toMatchObject({ status: 503, body: { code: "replica_stale" } });
    const silent = seen.filter(({ atMs }) => atMs > stalledAtMs + BELIEVED_MS + LATE_MS && atMs < resumedAtMs);
    expect(silent.length).toBeGreaterThanOrEqual(LEAST_POLLS);
    expect(silent.filter(({ answer, waitedMs }) => answer !== "replica_stale" || waitedMs > LATE_MS)).toEqual([]);

    // Every later answer is correct: the order is paid, and the revoked display is unknown.
    const after = seen.filter(({ atMs, answer }) => atMs > resumedAtMs && !/replica_stale|throttled/.test(answer));
    const isTrue = ({ display, answer }: Seen): boolean =>
      display === revoked ? answer === "credential_invalid" : answer === `paid ${price}` || answer === "idle 0.00";
    const knownAsGone = new Set([...displays.keys()].filter((display) => display < revoked));
    expect(after.filter((each) => !isTrue(each) && !knownAsGone.has(each.display))).toEqual([]);
    expect(after.length).toBeGreaterThanOrEqual(LEAST_POLLS);
    const recoveredMs = Math.round((after[0]?.atMs ?? Number.NaN) - resumedAtMs);
    const lastBelieved = seen.findLast(({ atMs, status }) => status === 200 && atMs < resumedAtMs);
    const believedMs = Math.round((lastBelieved?.atMs ?? Number.NaN) - stalledAtMs);
    process.stderr.write(`cut off: ${JSON.stringify({ silentMs, believedMs, recoveredMs })}\n`);
  });
});
