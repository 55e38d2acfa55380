/** The answer to a refused callback, the list of configs, and the error for an order whose money may have moved. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AddressThrottle, CALLBACK_RATE } from "../../../gateway/read-model/throttles.ts";
import { CALLBACK_REFUSAL_RATE } from "../../../services/bus/messages/callbacks.ts";
import { closeDatabase, type Database, openDatabase } from "../../../services/db/pool.ts";
import { postCallback } from "../../providers/emvco-callback.ts";
import { emvcoSettings } from "../../support/emvco-settings.ts";
import type { Answer, Refused } from "../../support/http.ts";
import { logIn, newOrder, openTill, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

const SECRET = "the secret of the acquirer";
const SETTINGS = emvcoSettings();

let system: TestSystem;
let owner: Person;
let database: Database;
const configIds: number[] = [];
beforeAll(async () => {
  system = await sharedSystem({ sandboxProvider: true, refusals: true });
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  database = openDatabase({ url: system.database.url, maxConnections: 1 });
  for (const name of ["Harbour", "Market", "Station"]) {
    const { filial_id } = await owner.good<{ filial_id: number }>("POST", "filials/", { body: { name } });
    const facts = { filial_id, kind: "emvco_generic", mode: "live", name, settings: SETTINGS };
    const body = { ...facts, secrets: { callback_secret: `${SECRET} of ${name}`.replaceAll(" ", "-") } };
    const made = await owner.good<{ provider_config: { config_id: number } }>("POST", "provider-configs/", { body });
    configIds.push(made.provider_config.config_id);
  }
});
afterAll(async () => {
  await closeDatabase(database);
  await system.stop();
});

const rightSecret = `${SECRET} of Harbour`.replaceAll(" ", "-");
const bodyOf = (id: string): string => JSON.stringify({ id, type: "account.updated" });

const callback = (configId: number, body: string, secret: string): Promise<Answer<Refused>> =>
  postCallback<Refused>(system.baseUrl, { configId, body, secret });

describe("callbacks with a wrong signature or a large body", () => {
  it("a wrong signature: an error like all others, also when throttled; valid callbacks are never throttled", async () => {
    const [configId = 0, otherId = 0] = configIds;
    const first = await callback(configId, bodyOf("wrong"), "another secret");
    expect(first.status).toBe(401);
    expect(first.body).toMatchObject({ code: "signature_invalid", request_id: first.headers.get("x-request-id") });
    expect(first.headers.get("www-authenticate")).toContain("Provider-Signature");
    const { refusals, windowMs } = CALLBACK_REFUSAL_RATE;
    const further = await Promise.all(
      Array.from({ length: refusals }, (_, index) => callback(configId, bodyOf(`wrong ${index}`), "another secret")),
    );
    const throttled = further.filter(({ status }) => status === 429);
    expect(throttled).toHaveLength(1);
    const [answer] = throttled;
    expect(answer?.body).toMatchObject({ code: "throttled", request_id: answer?.headers.get("x-request-id") });
    const seconds = Number(answer?.headers.get("retry-after"));
    expect(seconds).toBeGreaterThan(1);
    expect(seconds).toBeLessThanOrEqual(windowMs / 1_000);
    expect(answer?.headers.get("ratelimit-policy")).toBe(`"callback-refused";q=${refusals};w=${windowMs / 1_000}`);
    expect(answer?.headers.get("ratelimit")).toBe(`"callback-refused";r=0;t=${seconds}`);
    // The budget at one address is counted by config.
    expect((await callback(otherId, bodyOf("wrong"), "another secret")).status).toBe(401);
    expect((await callback(configId, bodyOf("right"), rightSecret)).status).toBe(200);
  });

  it("a body that is too large: 413 with any signature; recorded, and throttled like other refused callbacks", async () => {
    const [, , configId = 0] = configIds;
    const large = JSON.stringify({ id: "large", type: "account.updated", pad: "x".repeat(16_384) });
    const secret = `${SECRET} of Station`.replaceAll(" ", "-");
    const answer = await callback(configId, large, secret);
    expect([answer.status, answer.body.code]).toEqual([413, "body_too_large"]);
    expect(answer.body.request_id).toBe(answer.headers.get("x-request-id"));
    const recorded = await database`
      select reason, address from provider_callback_refusals where config_id = ${configId}`;
    const refused = { reason: "body_too_large", address: "127.0.0.1" };
    expect(recorded).toEqual([refused]);
    const unknown = await callback(configId + 1_000, large, secret);
    expect([unknown.status, unknown.body.code]).toEqual([413, "body_too_large"]);
    for (let nth = 1; nth < CALLBACK_REFUSAL_RATE.refusals; nth += 1) await callback(configId, large, secret);
    expect((await callback(configId, large, secret)).status).toBe(429);
    expect((await callback(configId, bodyOf("small"), secret)).status).toBe(200);
  });

  it("300 wrong signatures from one address: a valid callback from this address is still accepted", async () => {
    // The throttle that protects the bus accepts more callbacks at once than this test sends.
    const throttle = new AddressThrottle(CALLBACK_RATE);
    const waits = Array.from({ length: 1_501 }, () => throttle.take("192.0.2.1", 1_000));
    expect(new Set(waits)).toEqual(new Set([0]));
    const [configId = 0] = configIds;
    const wrong = Array.from({ length: 300 }, (_, index) => index);
    const statuses = new Set<number>();
    const sendAll = async (): Promise<void> => {
      for (let index = wrong.pop(); index !== undefined; index = wrong.pop()) {
        statuses.add((await callback(configId, bodyOf(`wrong ${index}`), "another secret")).status);
      }
    };
    await Promise.all(Array.from({ length: 20 }, sendAll));
    expect([...statuses].every((status) => status === 401 || status === 429)).toBe(true);
    const right = await callback(configId, bodyOf("right among wrong"), rightSecret);
    expect([right.status, right.text]).toEqual([200, expect.stringContaining('"received":true')]);
  });
});

describe("the owner's list of provider configs", () => {
  it("read in pages: each config once, by id", async () => {
    interface Page {
      readonly provider_configs: readonly { readonly config_id: number }[];
      readonly has_more: boolean;
    }
    const seen: number[] = [];
    for (let hasMore = true; hasMore; ) {
      const page = await owner.good<Page>("GET", `provider-configs/?limit=2&since_id=${seen.at(-1) ?? 0}`);
      expect(page.provider_configs.length).toBeLessThanOrEqual(2);
      seen.push(...page.provider_configs.map(({ config_id }) => config_id));
      hasMore = page.has_more;
    }
    const all = await owner.good<Page>("GET", "provider-configs/");
    expect(all.has_more).toBe(false);
    expect(seen).toEqual(all.provider_configs.map(({ config_id }) => config_id));
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    expect(seen).toEqual(expect.arrayContaining(configIds));
  });
});

describe("the collection of an order for which money may have moved", () => {
  it("a second collection: refused, with the earlier collection and the reason", async () => {
    const { cashier, station } = await openTill(system);
    // For this amount, the sandbox provider never reports a result.
    const order_id = await newOrder(cashier, station, "12.12");
    const qr = { body: { order_id, route: "dynamic_qr" } };
    const { intent_id } = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, qr);
    const read = () => cashier.good<{ status: string }>("GET", `${station}/intents/${intent_id}/`);
    await expect.poll(async () => (await read()).status, { timeout: 15_000 }).toBe("presented");
    await cashier.good("POST", `${station}/intents/${intent_id}/cancel/`);
    const answer = await cashier.call<Refused>("POST", `${station}/intents/`, { body: { order_id, route: "cash" } });
    expect([answer.status, answer.body.code]).toEqual([409, "money_may_have_moved"]);
    expect(answer.body).toMatchObject({ earlier_intent_id: intent_id, reason: "qr_presented" });
  });
});
