/** Webhooks over HTTP: what an owner registers and sees, and what a consumer receives and reads again. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { verifyWebhook } from "../../../clients/webhook-verifier.ts";
import { type ApiClient, apiClient } from "../../support/api-client.ts";
import { guide, runGuideLine } from "../../support/guide.ts";
import { send } from "../../support/http.ts";
import { logIn, type Person } from "../../support/people.ts";
import { addOrganization } from "../../support/second-organization.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

const WAIT = { timeout: 20_000, interval: 50 };
const TEST_MS = 60_000;

interface Delivery {
  readonly delivery_id: number;
  readonly event_type: string;
  readonly status: string;
  readonly created_at: string;
  readonly attempts: number;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly endpoint_id?: number | null;
}
interface Deliveries {
  readonly webhook_deliveries: readonly Delivery[];
  readonly has_more: boolean;
}
interface Endpoint {
  readonly endpoint_id: number;
  readonly status: string;
  readonly disabled_reason: string | null;
  readonly open_until: string | null;
  readonly consecutive_failures: number;
  readonly secrets: readonly { readonly created_at: string; readonly expires_at: string | null }[];
}
interface NewEndpoint {
  readonly webhook_endpoint: Endpoint;
  readonly secret: string;
}
interface Received {
  readonly header: string | undefined;
  readonly body: string;
}

let system: TestSystem;
let owner: Person;
let foreigner: Person;
let target: {
  readonly url: string;
  readonly received: Received[];
  answer: number;
  text: string;
  delayMs: number;
  stop(): Promise<unknown>;
};

beforeAll(async () => {
  system = await sharedSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  foreigner = await logIn(system.baseUrl, "backoffice", (await addOrganization(system)).owner);
  target = await startTarget();
}, TEST_MS);
afterAll(async () => {
  await target.stop();
  await system.stop();
});

async function startTarget(): Promise<typeof target> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const header = request.headers["x-service-robotics-signature"] as string | undefined;
      received.push({ header, body: Buffer.concat(chunks).toString() });
      setTimeout(() => response.writeHead(found.answer).end(found.text), found.delayMs);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const stop = () => (server.closeAllConnections(), once(server.close(), "close"));
  const found = { url: `http://127.0.0.1:${port}/hook`, received, answer: 200, text: "taken", delayMs: 0, stop };
  return found;
}

interface Fleet extends ApiClient {
  readonly consumerId: number;
}
async function newFleet(mode: "test" | "live" = "test"): Promise<Fleet> {
  const body = { filial_id: system.sandbox.filialId, name: `Fleet ${Math.random()}`, mode };
  const made = await owner.good<{ robotics_consumer: { consumer_id: number }; credential: string }>(
    "POST",
    "robotics-consumers/",
    { body },
  );
  const api = apiClient(`${system.baseUrl}/api/robotics/v1/`, made.credential);
  return { ...api, consumerId: made.robotics_consumer.consumer_id };
}

const register = (fleet: Fleet, url = target.url) =>
  owner.good<NewEndpoint>("POST", "webhook-endpoints/", { body: { consumer_id: fleet.consumerId, url } });

async function offer(fleet: Fleet): Promise<number> {
  const body = {
    consumer_id: fleet.consumerId,
    leg: "courier",
    manifest: [{ name: "A secret soup", quantity: 2 }],
    destination: { name: "A secret street" },
  };
  return (await owner.good<{ task_id: number }>("POST", "serving-tasks/", { body })).task_id;
}
const deliveriesOf = async (fleet: Fleet, query = "") =>
  (await fleet.good<Deliveries>("GET", `webhook-deliveries/${query}`)).webhook_deliveries;
const receivedBy = (taskId: number) => target.received.filter(({ body }) => body.includes(`"task_id":${taskId},`));

describe("a delivery of an event", () => {
  it(
    "reaches the registered address, signed, with the contract's fields and nothing else; can be read again",
    async () => {
      const fleet = await newFleet();
      const { secret, webhook_endpoint } = await register(fleet);
      expect(secret).toMatch(/^whsec_[\w-]{43}$/);
      const taskId = await offer(fleet);
      await vi.waitFor(() => expect(receivedBy(taskId)).toHaveLength(1), WAIT);
      const { header, body } = receivedBy(taskId)[0] as Received;
      expect(verifyWebhook({ header, body, secrets: [secret] })).toBe("valid");
      expect(body).not.toMatch(/secret|manifest|destination/);
      const sent = JSON.parse(body) as Delivery;
      expect(Object.keys(sent)).toEqual(["delivery_id", "event_type", "created_at", "payload"]);
      expect(sent.created_at).toMatch(/\.\d{3}Z$/);

      await vi.waitFor(
        async () => expect(await deliveriesOf(fleet)).toMatchObject([{ ...sent, status: "delivered", attempts: 1 }]),
        WAIT,
      );
      const detail = await owner.good<{ webhook_delivery: Delivery; attempts: object[] }>(
        "GET",
        `webhook-deliveries/${sent.delivery_id}/`,
      );
      expect(detail.webhook_delivery).toMatchObject({ ...sent, endpoint_id: webhook_endpoint.endpoint_id });
      expect(detail.attempts).toMatchObject([{ status: 200, error: null, response_body: "taken", manual: false }]);
      const path = `webhook-endpoints/${webhook_endpoint.endpoint_id}/`;
      const shown = await owner.call("GET", path);
      expect(shown.text).not.toContain(secret.slice(6));
      expect(await owner.good("GET", `webhook-endpoints/?consumer_id=${fleet.consumerId}`)).toMatchObject({
        webhook_endpoints: [{ url: target.url, status: "active", consecutive_failures: 0 }],
        has_more: false,
      });
    },
    TEST_MS,
  );

  it(
    "without an endpoint: its consumer can read it, page by page, and by event and status",
    async () => {
      const fleet = await newFleet();
      const taskIds = [await offer(fleet), await offer(fleet), await offer(fleet)];
      await owner.good("POST", `serving-tasks/${taskIds[0]}/cancel/`, { body: { reason: "A test." } });
      await vi.waitFor(async () => expect(await deliveriesOf(fleet)).toHaveLength(4), WAIT);
      const all = await deliveriesOf(fleet);
      expect(all.map(({ status }) => status)).toEqual(["unsent", "unsent", "unsent", "unsent"]);
      const ids = all.map(({ delivery_id }) => delivery_id);
      expect(ids).toEqual(ids.toSorted((one, other) => one - other));

      const paged: number[] = [];
      for (let more = true; more; ) {
        const path = `webhook-deliveries/?since_id=${paged.at(-1) ?? 0}&limit=3`;
        const page: Deliveries = await fleet.good<Deliveries>("GET", path);
        paged.push(...page.webhook_deliveries.map(({ delivery_id }) => delivery_id));
        more = page.has_more;
      }
      expect(paged).toEqual(ids);
      expect(await deliveriesOf(fleet, `?since_id=${ids[3]}`)).toEqual([]);
      expect(await deliveriesOf(fleet, "?event_type=serving_task.cancelled")).toMatchObject([
        { payload: { task_id: taskIds[0], status: "cancelled" } },
      ]);
      expect(await deliveriesOf(fleet, "?status=delivered")).toEqual([]);
      await fleet.refused("invalid_request", "GET", "webhook-deliveries/?status=lost");
      await fleet.refused("invalid_request", "GET", "webhook-deliveries/?since_id=-1");
      await fleet.refused("endpoint_unavailable", "POST", `webhook-deliveries/${ids[0]}/redeliver/`);
    },
    TEST_MS,
  );

  it(
    "requested again by its consumer, five times with one key: sent one more time",
    async () => {
      const fleet = await newFleet();
      const { secret } = await register(fleet);
      const taskId = await offer(fleet);
      await vi.waitFor(async () => expect((await deliveriesOf(fleet))[0]?.status).toBe("delivered"), WAIT);
      const [delivery] = (await deliveriesOf(fleet)) as [Delivery];
      const path = `webhook-deliveries/${delivery.delivery_id}/redeliver/`;
      const answers = await Promise.all(Array.from({ length: 5 }, () => fleet.call("POST", path, { key: "one" })));
      expect(answers.map(({ status }) => status)).toEqual([202, 202, 202, 202, 202]);
      await vi.waitFor(async () => expect((await deliveriesOf(fleet))[0]).toMatchObject({ attempts: 2 }), WAIT);
      await vi.waitFor(async () => expect((await deliveriesOf(fleet))[0]?.status).toBe("delivered"), WAIT);
      const [first, second, ...more] = receivedBy(taskId);
      expect(more).toEqual([]);
      expect(second?.body).toBe(first?.body);
      expect(verifyWebhook({ ...(second as Received), secrets: [secret] })).toBe("valid");
      await fleet.refused("invalid_request", "POST", path, { key: "k".repeat(256) });
    },
    TEST_MS,
  );
});

describe("what an owner sees of webhooks", () => {
  it(
    "deliveries: newest first, page by page, of one consumer or endpoint, by event and status",
    async () => {
      const fleet = await newFleet();
      const [first, second] = [await register(fleet), await register(fleet, `${target.url}?second`)];
      const [one, two] = [first.webhook_endpoint.endpoint_id, second.webhook_endpoint.endpoint_id];
      await owner.good("PATCH", `webhook-endpoints/${two}/`, { body: { status: "paused" } });
      const taskId = await offer(fleet);
      await owner.good("POST", `serving-tasks/${taskId}/cancel/`, { body: { reason: "A test." } });
      const read = async (query: string) =>
        (await owner.good<Deliveries>("GET", `webhook-deliveries/?${query}`)).webhook_deliveries;
      const ofFleet = `consumer_id=${fleet.consumerId}`;
      await vi.waitFor(async () => expect(await read(`${ofFleet}&status=delivered`)).toHaveLength(2), WAIT);
      const all = await read(ofFleet);
      const ids = all.map(({ delivery_id }) => delivery_id);
      expect(ids).toHaveLength(4);
      expect(ids).toEqual(ids.toSorted((a, b) => b - a));
      const shown = async (query: string) =>
        (await read(query)).map(({ endpoint_id, event_type, status }) => [endpoint_id, event_type, status]);
      expect(new Set((await shown(`endpoint_id=${one}`)).map(String))).toEqual(
        new Set([`${one},serving_task.cancelled,delivered`, `${one},serving_task.offered,delivered`]),
      );
      expect(await shown(`endpoint_id=${two}&event_type=serving_task.offered`)).toEqual([
        [two, "serving_task.offered", "pending"],
      ]);
      expect((await shown(`${ofFleet}&status=pending`)).map(([endpoint]) => endpoint)).toEqual([two, two]);
      const pages = [await read(`${ofFleet}&limit=3`), await read(`${ofFleet}&limit=3&before_id=${ids[2]}`)];
      expect(pages.map((page) => page.map(({ delivery_id }) => delivery_id))).toEqual([ids.slice(0, 3), ids.slice(3)]);
      const { has_more } = await owner.good<Deliveries>("GET", `webhook-deliveries/?${ofFleet}&limit=3`);
      expect(has_more).toBe(true);
    },
    TEST_MS,
  );

  it(
    "an endpoint: how long each secret signs, the stored part of a target's answer, and an open breaker",
    async () => {
      const fleet = await newFleet();
      const path = `webhook-endpoints/${(await register(fleet)).webhook_endpoint.endpoint_id}/`;
      const overlapsOf = async (body: object) => {
        const { webhook_endpoint } = await owner.good<NewEndpoint>("POST", `${path}rotate/`, { body });
        return webhook_endpoint.secrets.map(({ expires_at }) =>
          expires_at === null ? null : Math.round((Date.parse(expires_at) - Date.now()) / 10_000),
        );
      };
      expect(await overlapsOf({ overlap_seconds: 3_600 })).toEqual([null, 360]);
      expect(await overlapsOf({ overlap_seconds: 0 })).toEqual([null]);
      expect(await overlapsOf({})).toEqual([null, 8_640]);

      target.text = "long ".repeat(4_000);
      const tried = await owner.good<{ attempt: { response_body: string } }>("POST", `${path}test/`);
      expect(tried).toMatchObject({ attempt: { status: 200, truncated: true } });
      expect(tried.attempt.response_body).toHaveLength(1_024);
      target.text = "taken";
      expect(await owner.good("POST", `${path}test/`)).toMatchObject({ attempt: { truncated: false } });

      target.answer = 500;
      for (let count = 0; count < 5; count += 1) await offer(fleet);
      const open = await vi.waitFor(async () => {
        const endpoint = await owner.good<Endpoint>("GET", path);
        expect(endpoint).toMatchObject({ status: "active", consecutive_failures: 5, open_until: expect.any(String) });
        return endpoint;
      }, WAIT);
      target.answer = 200;
      expect(Date.parse(open.open_until ?? "")).toBeGreaterThan(Date.now());
    },
    TEST_MS,
  );
});

describe("a webhook endpoint", () => {
  it("registered by the guide's request: its secret is shown", async () => {
    const fleet = await newFleet();
    const made = await runGuideLine<object>(guide, "$WEBHOOK_URL", {
      BASE_URL: system.baseUrl,
      OWNER: owner.token,
      CONSUMER_ID: String(fleet.consumerId),
      WEBHOOK_URL: target.url,
    });
    expect(made).toMatchObject({ secret: expect.stringMatching(/^whsec_/) });
  });

  it("an address that webhooks may not use: refused with the reason", async () => {
    const [test, live] = [await newFleet(), await newFleet("live")];
    for (const [fleet, url, reason] of [
      [live, target.url, "not_https"],
      [live, "https://127.0.0.1/hook", "host_not_public"],
      [test, "https://10.0.0.1/hook", "host_not_public"],
      [test, "https://user:word@fleet.example/", "credentials_in_url"],
      [test, "ftp://fleet.example/", "not_https"],
    ] as const) {
      const body = { consumer_id: fleet.consumerId, url };
      const { status, body: refused } = await owner.refused("webhook_target_refused", "POST", "webhook-endpoints/", {
        body,
      });
      expect([status, refused.reason], url).toEqual([422, reason]);
      if (reason !== "credentials_in_url") expect(refused.detail).toContain("WEBHOOK_ALLOW_LOOPBACK");
    }
    const unknown = { consumer_id: 987_654, url: target.url };
    const none = await owner.refused("not_found", "POST", "webhook-endpoints/", { body: unknown });
    expect(none.body.detail).toBe("There is nothing here with this `consumer_id`.");
    const tooLong = { consumer_id: test.consumerId, url: `https://fleet.example/${"x".repeat(2_048)}` };
    await owner.refused("invalid_request", "POST", "webhook-endpoints/", { body: tooLong });
  });

  it(
    "its owner can test, rotate, pause and delete it",
    async () => {
      const fleet = await newFleet();
      const { webhook_endpoint, secret } = await register(fleet);
      const path = `webhook-endpoints/${webhook_endpoint.endpoint_id}/`;
      const rotated = await owner.good<NewEndpoint>("POST", `${path}rotate/`);
      expect(rotated.webhook_endpoint.secrets).toHaveLength(2);
      await owner.refused("conflict", "POST", `${path}rotate/`, { body: { overlap_seconds: 60 } });

      const tried = await owner.good("POST", `${path}test/`);
      expect(tried).toMatchObject({
        webhook_delivery: {
          event_type: "webhook.test",
          status: "delivered",
          payload: { endpoint_id: expect.any(Number) },
        },
        attempt: { status: 200, error: null, manual: true },
      });
      const { header, body } = target.received.findLast((one) => one.body.includes("webhook.test")) as Received;
      for (const known of [secret, rotated.secret])
        expect(verifyWebhook({ header, body, secrets: [known] })).toBe("valid");
      const now = await owner.good<NewEndpoint>("POST", `${path}rotate/`, { body: { overlap_seconds: 0 } });
      expect(now.webhook_endpoint.secrets).toHaveLength(1);

      target.answer = 500;
      expect(await owner.good("POST", `${path}test/`)).toMatchObject({
        webhook_delivery: { status: "failed" },
        attempt: { status: 500, error: "status_not_success" },
      });
      target.answer = 200;

      expect(await owner.good("PATCH", path, { body: { status: "paused" } })).toMatchObject({ status: "paused" });
      const taskId = await offer(fleet);
      const waiting = () =>
        owner.good<Deliveries>("GET", `webhook-deliveries/?consumer_id=${fleet.consumerId}&status=pending`);
      await vi.waitFor(async () => expect((await waiting()).webhook_deliveries).toHaveLength(1), WAIT);
      expect(receivedBy(taskId)).toEqual([]);
      await owner.good("PATCH", path, { body: { status: "active" } });
      await vi.waitFor(() => expect(receivedBy(taskId)).toHaveLength(1), WAIT);
      await owner.refused("invalid_request", "PATCH", path, { body: { status: "disabled" } });

      expect((await owner.call("DELETE", path)).status).toBe(204);
      await owner.refused("not_found", "GET", path);
      expect((await deliveriesOf(fleet)).length).toBe(3);
    },
    TEST_MS,
  );

  it(
    "answers its test with 410: disabled at once, with the reason, and its waiting deliveries fail",
    async () => {
      const fleet = await newFleet();
      const { webhook_endpoint } = await register(fleet);
      const path = `webhook-endpoints/${webhook_endpoint.endpoint_id}/`;
      await owner.good("PATCH", path, { body: { status: "paused" } });
      await offer(fleet);
      await vi.waitFor(async () => expect((await deliveriesOf(fleet))[0]?.status).toBe("pending"), WAIT);
      target.answer = 410;
      expect(await owner.good("POST", `${path}test/`)).toMatchObject({
        webhook_delivery: { status: "failed" },
        attempt: { status: 410, error: "status_not_success" },
      });
      target.answer = 200;
      const gone = { status: "disabled", disabled_reason: "gone" };
      expect(await owner.good("GET", path)).toMatchObject(gone);
      expect((await deliveriesOf(fleet)).map(({ status }) => status)).toEqual(["failed", "failed"]);
      const { events } = await owner.good<{ events: readonly object[] }>("GET", "robotics-events/?limit=1");
      expect(events).toMatchObject([
        {
          action: "webhook_endpoint_disabled",
          actor: { kind: "system" },
          subject: { kind: "webhook_endpoint", id: webhook_endpoint.endpoint_id },
          data: { reason: "gone", url: target.url },
        },
      ]);
      // The owner can still test it. Only the owner can activate it again.
      expect(await owner.good("POST", `${path}test/`)).toMatchObject({ attempt: { status: 200, error: null } });
      expect(await owner.good("GET", path)).toMatchObject(gone);
      expect(await owner.good("PATCH", path, { body: { status: "active" } })).toMatchObject({ disabled_reason: null });
    },
    TEST_MS,
  );

  it(
    "activated by its owner during a test with 410: stays active",
    async () => {
      const { webhook_endpoint } = await register(await newFleet());
      const path = `webhook-endpoints/${webhook_endpoint.endpoint_id}/`;
      const before = target.received.length;
      Object.assign(target, { answer: 410, delayMs: 1_000 });
      const testing = owner.good("POST", `${path}test/`);
      await vi.waitFor(() => expect(target.received.length).toBe(before + 1), WAIT);
      for (const status of ["paused", "active"]) await owner.good("PATCH", path, { body: { status } });
      expect(await testing).toMatchObject({ attempt: { status: 410 } });
      Object.assign(target, { answer: 200, delayMs: 0 });
      expect(await owner.good("GET", path)).toMatchObject({ status: "active", disabled_reason: null });
    },
    TEST_MS,
  );

  it(
    "a row with another endpoint's secret: nothing is sent",
    async () => {
      const fleet = await newFleet();
      const [one, other] = [await register(fleet), await register(fleet)].map(
        ({ webhook_endpoint }) => webhook_endpoint.endpoint_id,
      ) as [number, number];
      const sql = postgres(system.database.url, { max: 1 });
      await sql`
        update webhook_secrets s set key_id = o.key_id, nonce = o.nonce, sealed = o.sealed
        from webhook_secrets o where s.endpoint_id = ${one} and o.endpoint_id = ${other}`;
      await sql.end();
      const received = target.received.length;
      expect(await owner.good("POST", `webhook-endpoints/${one}/test/`)).toMatchObject({
        webhook_delivery: { status: "failed" },
        attempt: { error: "secret_unreadable", status: null },
      });
      expect(target.received).toHaveLength(received);
      expect(await owner.good("POST", `webhook-endpoints/${other}/test/`)).toMatchObject({ attempt: { error: null } });
    },
    TEST_MS,
  );

  it(
    "three tests at once: one is sent, the others are refused as `busy`; a later one is sent",
    async () => {
      const { webhook_endpoint } = await register(await newFleet());
      const path = `webhook-endpoints/${webhook_endpoint.endpoint_id}/test/`;
      target.delayMs = 4_000;
      const answers = await Promise.all(Array.from({ length: 3 }, () => owner.call("POST", path)));
      target.delayMs = 0;
      const refused = answers.filter(({ status }) => status !== 200);
      expect(refused.map(({ status, body }) => [status, (body as { code?: string }).code])).toEqual([
        [503, "busy"],
        [503, "busy"],
      ]);
      await owner.good("POST", path);
    },
    TEST_MS,
  );

  it(
    "a slow target: the test waits for its answer",
    async () => {
      const { webhook_endpoint } = await register(await newFleet());
      // This is longer than the gateway waits for any other answer of a service.
      target.delayMs = 6_000;
      const tried = await owner.good("POST", `webhook-endpoints/${webhook_endpoint.endpoint_id}/test/`);
      target.delayMs = 0;
      expect(tried).toMatchObject({ attempt: { status: 200, error: null } });
    },
    TEST_MS,
  );

  it(
    "read by other owners and other consumers: the endpoint and its deliveries are not found",
    async () => {
      const [fleet, other] = [await newFleet(), await newFleet()];
      const { webhook_endpoint } = await register(fleet);
      await offer(fleet);
      await vi.waitFor(async () => expect(await deliveriesOf(fleet)).toHaveLength(1), WAIT);
      const [delivery] = (await deliveriesOf(fleet)) as [Delivery];
      const endpoint = `webhook-endpoints/${webhook_endpoint.endpoint_id}/`;
      await foreigner.refused("not_found", "GET", endpoint);
      await foreigner.refused("not_found", "PATCH", endpoint, { body: { status: "paused" } });
      await foreigner.refused("not_found", "DELETE", endpoint);
      await foreigner.refused("not_found", "POST", `${endpoint}test/`);
      await foreigner.refused("not_found", "POST", `${endpoint}rotate/`);
      await foreigner.refused("not_found", "GET", `webhook-deliveries/${delivery.delivery_id}/`);
      const body = { consumer_id: fleet.consumerId, url: target.url };
      await foreigner.refused("not_found", "POST", "webhook-endpoints/", { body });
      expect(await foreigner.good("GET", "webhook-endpoints/")).toEqual({ webhook_endpoints: [], has_more: false });
      expect(await foreigner.good("GET", "webhook-deliveries/")).toEqual({ webhook_deliveries: [], has_more: false });
      expect(await deliveriesOf(other)).toEqual([]);
      await other.refused("not_found", "POST", `webhook-deliveries/${delivery.delivery_id}/redeliver/`);
    },
    TEST_MS,
  );
});

describe("the AsyncAPI document over HTTP", () => {
  it("served, with 304 for its ETag", async () => {
    const { status, body, headers } = await send(system.baseUrl, "GET", "/asyncapi.json");
    expect(status).toBe(200);
    expect(body).toMatchObject({ asyncapi: "3.0.0" });
    const again = { headers: { "if-none-match": headers.get("etag") as string } };
    expect((await send(system.baseUrl, "GET", "/asyncapi.json", again)).status).toBe(304);
  });
});
