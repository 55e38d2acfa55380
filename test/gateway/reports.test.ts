/** Assignment and report with a real actor: only GET presents, evidence is stored once, and a refusal reveals nothing. */

import { hash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { askStation } from "../../services/bus/station-client.ts";
import { DEVICES, enrollDevice, enrollSandboxDevice, newCode, type TestDevice } from "../support/devices.ts";
import { HANGS } from "../support/hangs.ts";
import { type Answer, type Refused, send } from "../support/http.ts";
import { logIn, newOrder, type Person } from "../support/people.ts";
import { addOrganization } from "../support/second-organization.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";

const REPORT = `${DEVICES}assignment/report/`;
/** Characters that change how people read the text around them: controls, marks of direction, half a surrogate pair. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/u;

interface Intent {
  readonly intent_id: number;
  readonly status: string;
  readonly report_count: number;
  readonly device_id: number;
  readonly reports: readonly { readonly provider_reference: string }[];
}
interface Timeline {
  readonly summary: string;
  readonly entries: readonly { readonly type: string; readonly sentence: string; readonly data: object }[];
}
interface Reported {
  readonly report: Record<string, unknown>;
  readonly assignment: Record<string, unknown>;
}

let system: TestSystem;
let backoffice: Person;
let cashier: Person;
let companion: TestDevice;
let stationId: number;

beforeAll(async () => {
  system = await sharedSystem();
  backoffice = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  stationId = system.sandbox.stations[0]?.stationId as number;
  companion = await enrollSandboxDevice(system, "smart_pos_companion");
  await cashier.good("POST", `stations/${stationId}/lease/`);
});
afterAll(() => system.stop());

/** Writes a new credential of a device into the bucket. Each credential has its throttle, which these tests do not check. */
async function freshCredential(deviceId: number, ofStation: number): Promise<string> {
  const credential = `dp_00_${randomBytes(32).toString("base64url")}`;
  const scopes = ["device:read", "device:heartbeat", "assignment:read", "assignment:report"];
  const key = `$KV.CREDENTIALS.${hash("sha256", credential, "hex")}`;
  await system.bus.js.publish(key, JSON.stringify({ deviceId, stationId: ofStation, scopes }));
  const isKnown = async (): Promise<boolean> =>
    (await send(system.baseUrl, "GET", `${DEVICES}me/`, { token: credential })).status === 200;
  await vi.waitUntil(isKnown, { ...HANGS, interval: 5 });
  return credential;
}
const companionCredential = (): Promise<string> => freshCredential(companion.deviceId, stationId);

async function handOver(person = cashier, station = stationId, device = companion.deviceId): Promise<number> {
  const token = await freshCredential(device, station);
  await send(system.baseUrl, "POST", `${DEVICES}heartbeat/`, { token });
  const order = await person.good<{ order_id: number }>("POST", `stations/${station}/orders/`, {
    body: { lines: [{ name: "Soup", quantity: 2, unit_amount: "12.50" }] },
  });
  const body = { order_id: order.order_id, route: "smart_pos", device_id: device };
  const create = (): Promise<Answer<Intent>> => person.call("POST", `stations/${station}/intents/`, { body });
  // The heartbeat reaches the station's actor a moment after it is stored.
  const created = await vi.waitUntil(async () => {
    const answer = await create();
    return answer.status === 201 ? answer : undefined;
  }, HANGS);
  return created.body.intent_id;
}

const readIntent = (intentId: number): Promise<Intent> =>
  cashier.good("GET", `stations/${stationId}/intents/${intentId}/`);
const cancel = (intentId: number): Promise<unknown> =>
  cashier.good("POST", `stations/${stationId}/intents/${intentId}/cancel/`);
const fetchAssignment = async (headers: Record<string, string> = {}): Promise<Answer> =>
  send(system.baseUrl, "GET", `${DEVICES}assignment/`, { token: await companionCredential(), headers });

async function report<T = Reported>(intentId: number, fields: object = {}, token?: string): Promise<Answer<T>> {
  const json = { intent_id: intentId, outcome: "reported_success", provider_reference: "RRN-1", ...fields };
  return send<T>(system.baseUrl, "POST", REPORT, { token: token ?? (await companionCredential()), json });
}

describe("fetches of an assignment", () => {
  it("GET presents the intent, HEAD and `me` do not; concurrent fetches have the same answer", async () => {
    const intentId = await handOver();
    await send(system.baseUrl, "HEAD", `${DEVICES}assignment/`, { token: await companionCredential() });
    await send(system.baseUrl, "GET", `${DEVICES}me/`, { token: await companionCredential() });
    expect((await readIntent(intentId)).status).toBe("created");
    const fetched = await Promise.all(Array.from({ length: 5 }, () => fetchAssignment()));
    for (const { status, body } of fetched) {
      expect(status).toBe(200);
      expect(body.assignment).toMatchObject({ intent_id: intentId, status: "presented", amount: "25.00" });
    }
    expect(new Set(fetched.map(({ headers }) => headers.get("etag"))).size).toBe(1);
    expect((await readIntent(intentId)).status).toBe("presented");
    const etag = fetched[0]?.headers.get("etag") as string;
    expect((await fetchAssignment({ "if-none-match": "*" })).status).toBe(304);
    expect((await fetchAssignment({ "if-none-match": `"x", ${etag}` })).status).toBe(304);
    await cancel(intentId);
    const after = await fetchAssignment({ "if-none-match": etag });
    expect([after.status, after.body.assignment]).toEqual([200, null]);
  });
});

describe("a report of the device's intent", () => {
  it.each(["reported_success", "reported_declined", "reported_cancelled", "reported_unknown"])(
    "%s: the intent is processing, and the texts are stored verbatim",
    async (outcome) => {
      const intentId = await handOver();
      const words = { outcome, provider_reference: "SLIP ✓ 1", provider_code: "D-51<script>" };
      const { status, body } = await report(intentId, words);
      expect(status).toBe(200);
      expect(body.report).toEqual({ ...words, reported_at: expect.any(String) as string });
      expect(body.assignment).toMatchObject({ intent_id: intentId, status: "processing", amount: "25.00" });
      expect(body.assignment).not.toHaveProperty("server_time");
      expect((await readIntent(intentId)).status).toBe("processing");
      await cancel(intentId);
    },
  );

  it("without reference, code and key, before the assignment was fetched: accepted", async () => {
    const intentId = await handOver();
    const json = { intent_id: intentId, outcome: "reported_unknown" };
    const { body } = await send<Reported>(system.baseUrl, "POST", REPORT, { token: await companionCredential(), json });
    expect(body.report).toMatchObject({ provider_reference: "", provider_code: "" });
    await cancel(intentId);
  });

  it("the same key, also with other fields and many at once: the same answer; another key: more evidence", async () => {
    const intentId = await handOver();
    const key = { client_idempotency_key: "ключ-1" };
    const tokens = await Promise.all(Array.from({ length: 6 }, companionCredential));
    const answers = await Promise.all(tokens.map((token) => report(intentId, key, token)));
    for (const { status, body } of answers) expect({ status, body }).toEqual({ status: 200, body: answers[0]?.body });
    const otherFields = await report(intentId, { ...key, outcome: "reported_declined", provider_reference: "X" });
    expect(otherFields.body).toEqual(answers[0]?.body);
    expect((await readIntent(intentId)).report_count).toBe(1);
    await report(intentId, { client_idempotency_key: "another" });
    await report(intentId);
    expect((await readIntent(intentId)).report_count).toBe(3);
    await cancel(intentId);
    // The key has its first answer also after the end of the intent (I6).
    expect((await report(intentId, key)).body).toEqual(answers[0]?.body);
  });

  it.each([
    ["direction overrides and line breaks", "RRN \u202E1\u2066\r\n2\u2028", "5\u202D1\n"],
    ["what no database can store", "SLIP\0 \ud800 \uFDD00000 \udc00", "51\ud800\0"],
    ["as much as a body can hold", "7".repeat(15_000), "5".repeat(1_000)],
    ["as many bytes as a body can hold", "七".repeat(5_000), ""],
  ])(
    "%s: the report, its repetition, the collection, the transaction and the timeline have it verbatim",
    async (...words) => {
      const [, provider_reference, provider_code] = words;
      const intentId = await handOver();
      const facts = { provider_reference, provider_code };
      const key = { client_idempotency_key: `\ud800${provider_code.slice(0, 3)}` };
      const { status, body } = await report(intentId, { ...facts, ...key, ["note\u0000"]: "\udc00" });
      expect(status).toBe(200);
      expect(body.report).toMatchObject(facts);
      expect((await report(intentId, { outcome: "reported_declined", ...key })).body).toEqual(body);
      expect(await readIntent(intentId)).toMatchObject({ reports: [facts], report_count: 1 });
      const path = `stations/${stationId}/intents/${intentId}/attest/`;
      const attested = await cashier.good<{ order_id: number }>("POST", path);
      expect(attested).toMatchObject({ attestation: { reference: provider_reference } });
      expect(await cashier.good("GET", `orders/${attested.order_id}/`)).toMatchObject({
        transaction: { reference: provider_reference },
      });
      const { entries } = await backoffice.good<Timeline>("GET", `intents/${intentId}/timeline/`);
      expect(entries.find(({ type }) => type === "outcome_reported")?.data).toMatchObject(facts);
      expect(entries.find(({ type }) => type === "intent_succeeded")?.data).toMatchObject({
        reference: provider_reference,
      });
    },
  );

  it("direction overrides and line breaks: escaped in the timeline's sentences and in the log", async () => {
    const intentId = await handOver();
    const words = { provider_reference: "SLIP \u202E1\u2066\n2\0\ud800", provider_code: "5\u202E1" };
    await report(intentId, words);
    await cashier.good("POST", `stations/${stationId}/intents/${intentId}/attest/`);
    const timeline = await backoffice.good<Timeline>("GET", `intents/${intentId}/timeline/`);
    const reported = timeline.entries.find(({ type }) => type === "outcome_reported");
    expect(reported?.sentence).toContain("reference SLIP \\u202e1\\u2066\\n2\\u0000\\ud800; this is evidence");
    expect(timeline.summary).toContain("reference SLIP \\u202e1\\u2066\\n2\\u0000\\ud800");
    for (const text of [timeline.summary, ...timeline.entries.map(({ sentence }) => sentence)])
      expect(text).not.toMatch(UNSAFE);
    for (const name of ["services", "stations", "gateway"] as const)
      expect(system.log(name).replaceAll("\n", "")).not.toMatch(UNSAFE);
  });

  it("long reports that the station has dropped: their keys still get the same answer", async () => {
    const intentId = await handOver();
    const reports = Array.from({ length: 4 }, (_, turn) => ({
      client_idempotency_key: `long-${turn}`,
      provider_reference: `${turn}-${"9".repeat(15_000)}`,
    }));
    const answers = [];
    for (const each of reports) answers.push((await report(intentId, each)).body);
    for (const [turn, each] of reports.entries()) {
      const { status, body } = await report(intentId, { ...each, outcome: "reported_declined" });
      expect([status, body]).toEqual([200, answers[turn]]);
    }
    const { reports: shown, report_count } = await readIntent(intentId);
    expect([shown.at(-1)?.provider_reference, report_count]).toEqual([reports.at(-1)?.provider_reference, 4]);
    await cancel(intentId);
  });

  it("an amount in the report: does not change the amount of the intent", async () => {
    const intentId = await handOver();
    const { body } = await report(intentId, { amount: "0.01", currency: "USD", order_display_number: 9 });
    expect(body.assignment).toMatchObject({ amount: "25.00", currency: "EUR" });
    await cancel(intentId);
  });
});

describe("a report about an intent of another device", () => {
  it("another device's, station's or organization's intent, or an unknown one: 404 without a detail", async () => {
    const owner = await logIn(system.baseUrl, "backoffice", system.owner);
    const [, second] = system.sandbox.stations;
    const otherStation = second?.stationId as number;
    const register = (person: Person, station: number): Promise<{ device_id: number }> =>
      person.good("POST", "devices/", { body: { station_id: station, name: "Other", kind: "smart_pos_companion" } });

    const otherDevice = await enrolled(owner, await register(owner, stationId));
    const ofOtherDevice = await handOver(cashier, stationId, otherDevice);
    await cashier.good("POST", `stations/${otherStation}/lease/`);
    const elsewhere = await enrolled(owner, await register(owner, otherStation));
    const ofOtherStation = await handOver(cashier, otherStation, elsewhere);
    const ofForeigner = await foreignIntent(await addOrganization(system), register);

    const ids = [ofOtherDevice, ofOtherStation, ofForeigner, 2_000_000_000, 0, -1, Number.MAX_SAFE_INTEGER];
    const answers = await Promise.all(ids.map((id) => report<Refused>(id)));
    const shapes = answers.map(({ status, headers, body }) => {
      const { request_id: _, ...rest } = body;
      return { status, rest, names: [...headers.keys()].toSorted() };
    });
    expect(shapes[0]).toMatchObject({ status: 404, rest: { code: "handoff_not_assigned" } });
    for (const [index, shape] of shapes.entries()) expect([ids[index], shape]).toEqual([ids[index], shapes[0]]);
    expect((await readIntent(ofOtherDevice)).report_count).toBe(0);
    await cancel(ofOtherDevice);
  });

  async function enrolled(owner: Person, device: { device_id: number }): Promise<number> {
    return (await enrollDevice(system.baseUrl, await newCode(owner, device.device_id))).deviceId;
  }

  async function foreignIntent(
    foreign: Awaited<ReturnType<typeof addOrganization>>,
    register: (person: Person, station: number) => Promise<{ device_id: number }>,
  ): Promise<number> {
    const owner = await logIn(system.baseUrl, "backoffice", foreign.owner);
    const filial = await owner.good<{ filial_id: number }>("POST", "filials/", { body: { name: "There" } });
    const body = { filial_id: filial.filial_id, name: "There 1", currency: "EUR" };
    const station = await owner.good<{ station_id: number }>("POST", "stations/", { body });
    const details = { email: "till@elsewhere.example", password: "a long password" };
    await owner.good("POST", "users/", { body: { ...details, name: "Till", role: "cashier" } });
    const till = await logIn(system.baseUrl, "cashier", details);
    const deviceId = await enrolled(owner, await register(owner, station.station_id));
    await till.good("POST", `stations/${station.station_id}/lease/`);
    return handOver(till, station.station_id, deviceId);
  }
});

describe("a report about an intent that has ended", () => {
  const late = async (intentId: number): Promise<unknown[]> => {
    const { status, body } = await report<Refused>(intentId, {
      client_idempotency_key: randomBytes(4).toString("hex"),
    });
    return [status, body.code, body.status];
  };

  it("succeeded, cancelled or expired: 409 with this end", async () => {
    const settled = await handOver();
    await report(settled);
    await cashier.good("POST", `stations/${stationId}/intents/${settled}/attest/`, { body: {} });
    expect(await late(settled)).toEqual([409, "intent_not_actionable", "succeeded"]);

    const cancelled = await handOver();
    await cancel(cancelled);
    expect(await late(cancelled)).toEqual([409, "intent_not_actionable", "cancelled"]);

    const expired = await createShortLived();
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(await late(expired)).toEqual([409, "intent_not_actionable", "expired"]);
    expect((await fetchAssignment()).body.assignment).toBeNull();
  });

  /** Creates the intent through the actor, which accepts any lifetime. HTTP accepts 30 seconds or more. */
  async function createShortLived(): Promise<number> {
    const orderId = await newOrder(cashier, `stations/${stationId}`, "3.00");
    const { intent } = await askStation(system.bus.nc, stationId, {
      commandId: randomBytes(8).toString("hex"),
      actor: { kind: "cashier", id: cashier.userId, name: cashier.name },
      command: { type: "intent_create", route: "smart_pos", orderId, deviceId: companion.deviceId, lifetimeMs: 500 },
    });
    return intent?.intentId as number;
  }
});

describe("a report of a device that is blocked during its collection", () => {
  const block = (path: string, verb: string): Promise<unknown> =>
    backoffice.good("POST", `${path}/${verb}/`, verb.includes("freeze") ? { body: { reason: "A drill" } } : {});

  it.each([
    ["frozen", "device_frozen", "freeze", "unfreeze"],
    ["suspended", "device_suspended", "suspend", "resume"],
  ])(
    "%s: refused with the reason, stored as evidence, and the next collection is `money_may_have_moved`",
    async (_what, reason, off, on) => {
      const intentId = await handOver();
      const token = await companionCredential();
      await block(`devices/${companion.deviceId}`, off);
      const key = { client_idempotency_key: `blocked-${reason}` };
      for (let times = 0; times < 2; times += 1) {
        const refused = await report<Refused>(intentId, key, token);
        expect([refused.status, refused.body.code]).toEqual([403, reason]);
      }
      expect((await report<Refused>(0, key, token)).body.code, "an unknown intent has the same refusal").toBe(reason);
      expect(await readIntent(intentId)).toMatchObject({ status: "created", report_count: 0 });
      const keptEvidence = async () => {
        const path = `intents/${intentId}/timeline/`;
        const { entries } = await backoffice.good<{ entries: { type: string; money_moved: string; data: object }[] }>(
          "GET",
          path,
        );
        return entries.filter(({ type }) => type === "late_evidence_kept");
      };
      await vi.waitUntil(async () => (await keptEvidence()).length > 0, { timeout: 15_000 });
      expect(await keptEvidence(), "stored once, although it was sent twice").toMatchObject([
        {
          money_moved: "maybe",
          data: { outcome: "reported_success", provider_reference: "RRN-1", blocked_reason: reason },
        },
      ]);
      const { order_id } = await cashier.good<{ order_id: number }>(
        "GET",
        `stations/${stationId}/intents/${intentId}/`,
      );
      await cancel(intentId);
      await block(`devices/${companion.deviceId}`, on);
      const body = { order_id, route: "cash" };
      const again = await cashier.call<Refused>("POST", `stations/${stationId}/intents/`, { body });
      expect([again.status, again.body.code]).toEqual([409, "money_may_have_moved"]);
    },
  );

  it("sent again with the same key after the block has ended: accepted", async () => {
    const intentId = await handOver();
    const token = await companionCredential();
    await block(`devices/${companion.deviceId}`, "freeze");
    const key = { client_idempotency_key: "once blocked" };
    expect((await report(intentId, key, token)).status).toBe(403);
    await block(`devices/${companion.deviceId}`, "unfreeze");
    await vi.waitUntil(async () => (await report(intentId, key, token)).status === 200, { ...HANGS, interval: 200 });
    expect(await readIntent(intentId)).toMatchObject({ status: "processing", report_count: 1 });
    await cancel(intentId);
  });
});
