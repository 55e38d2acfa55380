/** Addresses that an owner's webhook may not have, over HTTP. Every address and URL of the test lists is refused. */
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import { addFleet, type TestFleet } from "../../support/fleets.ts";
import { logIn, type Person } from "../../support/people.ts";
import { startSystem, type TestSystem } from "../../support/system.ts";
import { REFUSED_IPV4, REFUSED_IPV6, REFUSED_URLS } from "../../webhook-signer/target/refused-targets.ts";

const TEST_MS = 60_000;

let system: TestSystem;
let owner: Person;
let fleet: TestFleet;

beforeAll(async () => {
  system = await startSystem({ webhookSigner: true });
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  fleet = await addFleet(system.baseUrl, owner, system.sandbox.filialId);
}, TEST_MS);
afterAll(() => system.stop());

const register = (url: string) =>
  owner.call("POST", "webhook-endpoints/", { body: { consumer_id: fleet.consumerId, url } });

/** Registers the URL. Returns the status, the code and the reason, and checks that the answer has a sentence. */
async function refusalOf(url: string): Promise<readonly unknown[]> {
  const { status, body } = await register(url);
  const { code, reason, detail } = body as Readonly<Record<string, unknown>>;
  expect(detail, url).toMatch(/\S/);
  return [status, code, reason];
}

/** Whether the schema refuses the text for its length: an empty one, or a longer one than a URL may be. */
const isOutOfBounds = (url: string): boolean => url.length < 1 || url.length > BOUNDS.webhookUrlCharacters;

describe("the target of an owner's webhook", () => {
  it(
    "a URL of the list of refused ones: refused with its reason",
    async () => {
      for (const [reason, urls] of Object.entries(REFUSED_URLS)) {
        for (const url of urls) {
          const expected = isOutOfBounds(url)
            ? [400, "invalid_request", undefined]
            : [422, "webhook_target_refused", reason];
          expect([url, ...(await refusalOf(url))]).toEqual([url, ...expected]);
        }
      }
    },
    TEST_MS,
  );

  it(
    "each address that is not public: refused, without and with a port",
    async () => {
      const hosts = [...REFUSED_IPV4, ...REFUSED_IPV6.map((address) => `[${address}]`)];
      for (const host of hosts) {
        for (const url of [`https://${host}/`, `https://${host}:8443/hook`])
          expect([url, ...(await refusalOf(url))]).toEqual([url, 422, "webhook_target_refused", "host_not_public"]);
      }
    },
    TEST_MS,
  );

  it("all refused URLs: none of them has created an endpoint", async () => {
    expect(await owner.good("GET", "webhook-endpoints/")).toEqual({ webhook_endpoints: [], has_more: false });
  });

  it(
    "public at its registration and private later: refused at an activation and at a test",
    async () => {
      const made = await register("HTTPS://8.8.8.8:443/Hook?a=b");
      expect(made.status, made.text).toBe(201);
      const { webhook_endpoint } = made.body as { webhook_endpoint: { endpoint_id: number; url: string } };
      const { endpoint_id, url } = webhook_endpoint;
      // The service stores the URL in the form that it will call.
      expect(url).toBe("https://8.8.8.8/Hook?a=b");
      const path = `webhook-endpoints/${endpoint_id}/`;
      await owner.good("PATCH", path, { body: { status: "paused" } });
      const sql = postgres(system.database.url, { max: 1 });
      await sql`update webhook_endpoints set url = 'https://10.0.0.1/hook' where endpoint_id = ${endpoint_id}`;
      await sql.end();
      const { body } = await owner.refused("webhook_target_refused", "PATCH", path, { body: { status: "active" } });
      expect(body.reason).toBe("host_not_public");
      expect(await owner.good("GET", path)).toMatchObject({ status: "paused" });
      // The result of the attempt reveals nothing about the target, not even a duration.
      const nothing = {
        address: null,
        dns_ms: null,
        connect_ms: null,
        tls_ms: null,
        first_byte_ms: null,
        total_ms: null,
      };
      expect(await owner.good("POST", `${path}test/`)).toMatchObject({
        attempt: { error: "target_refused", status: null, response_body: "", ...nothing },
      });
    },
    TEST_MS,
  );
});
