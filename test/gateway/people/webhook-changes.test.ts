/** Webhooks over HTTP: a name whose address changes, a repeated delivery, and what the audit log stores. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { addFleet, offerTask, type TestFleet } from "../../support/fleets.ts";
import { type NameServer, startNameServer } from "../../support/name-server.ts";
import { logIn, type Person } from "../../support/people.ts";
import { startSystem, type TestSystem } from "../../support/system.ts";

const WAIT = { timeout: 20_000, interval: 50 };
const TEST_MS = 60_000;

let system: TestSystem;
let owner: Person;
let fleet: TestFleet;
let names: NameServer;
let target: Server;
let targetUrl: string;
let received = 0;

beforeAll(async () => {
  names = await startNameServer();
  const environment = { WEBHOOK_ALLOW_LOOPBACK: "true", WEBHOOK_DNS_SERVERS: names.address };
  system = await startSystem({ webhookSigner: true, environment });
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  fleet = await addFleet(system.baseUrl, owner, system.sandbox.filialId);
  target = createServer((request, response) => {
    received += 1;
    request.resume().once("end", () => response.writeHead(204).end());
  }).listen(0, "127.0.0.1");
  await once(target, "listening");
  targetUrl = `http://127.0.0.1:${(target.address() as AddressInfo).port}/hook`;
}, TEST_MS);
afterAll(async () => {
  target.closeAllConnections();
  target.close();
  await system.stop();
  await names.close();
});

interface NewEndpoint {
  readonly webhook_endpoint: { readonly endpoint_id: number };
}
async function register(url: string, of = fleet): Promise<number> {
  const body = { consumer_id: of.consumerId, url };
  const { webhook_endpoint } = await owner.good<NewEndpoint>("POST", "webhook-endpoints/", { body });
  return webhook_endpoint.endpoint_id;
}

describe("webhooks over HTTP", () => {
  it(
    "an endpoint whose name has become private: not activated, and stays paused",
    async () => {
      let address = "8.8.4.4";
      names.answerWith((_name, kind) => (kind === "A" ? { addresses: [address] } : {}));
      const path = `webhook-endpoints/${await register("https://fleet.example/hook")}/`;
      await owner.good("PATCH", path, { body: { status: "paused" } });
      address = "10.0.0.1";
      const activate = { body: { status: "active" } };
      const { status, body } = await owner.refused("webhook_target_refused", "PATCH", path, activate);
      expect([status, body.reason]).toEqual([422, "host_not_public"]);
      expect(await owner.good("GET", path)).toMatchObject({ status: "paused" });
      address = "8.8.4.4";
      expect(await owner.good("PATCH", path, activate)).toMatchObject({ status: "active" });
      expect((await owner.call("DELETE", path)).status).toBe(204);
    },
    TEST_MS,
  );

  it(
    "a delivery that was requested again with a key: not sent again with this caller's key, also after its end",
    async () => {
      const resent = await addFleet(system.baseUrl, owner, system.sandbox.filialId, "Resent");
      await register(targetUrl, resent);
      await offerTask(owner, resent);
      interface Deliveries {
        readonly webhook_deliveries: readonly { delivery_id: number; status: string; attempts: number }[];
      }
      // The owner reads: the throttle of the consumer is for its requests below.
      const path = `webhook-deliveries/?consumer_id=${resent.consumerId}`;
      const read = async () => (await owner.good<Deliveries>("GET", path)).webhook_deliveries[0];
      const done = (attempts: number) =>
        vi.waitFor(async () => expect(await read()).toMatchObject({ status: "delivered", attempts }), WAIT);
      await done(1);
      const resend = (key: string, by: Pick<Person, "call"> = resent) =>
        read().then((found) => by.call("POST", `webhook-deliveries/${found?.delivery_id}/redeliver/`, { key }));
      expect((await resend("first")).status).toBe(202);
      await done(2);
      const again = await resend("first");
      expect([again.status, again.body]).toMatchObject([202, { status: "delivered", attempts: 2 }]);
      // A delivery with another key is sent later. If the first key had sent another one, it would have arrived by then.
      expect((await resend("second")).status).toBe(202);
      await done(3);
      // A fixed defect: the owner's request with the consumer's key was accepted, and nothing was sent.
      expect((await resend("first", owner)).status).toBe(202);
      await done(4);
      expect((await resend("first", owner)).status).toBe(202);
      expect((await resend("third", owner)).status).toBe(202);
      await done(5);
      expect(received).toBe(5);
    },
    TEST_MS,
  );

  it(
    "the audit log: has the address of a webhook without its query, which may contain a target's token",
    async () => {
      const id = await register(`${targetUrl}?token=opensesame`);
      expect(await owner.good("GET", `webhook-endpoints/${id}/`)).toMatchObject({
        url: `${targetUrl}?token=opensesame`,
      });
      expect((await owner.call("DELETE", `webhook-endpoints/${id}/`)).status).toBe(204);
      const events = await owner.call("GET", "robotics-events/?limit=2");
      expect(events.body).toMatchObject({
        events: [
          { action: "webhook_endpoint_deleted", subject: { id }, data: { url: targetUrl } },
          { action: "webhook_endpoint_registered", subject: { id }, data: { url: targetUrl } },
        ],
      });
      expect(events.text).not.toContain("opensesame");
    },
    TEST_MS,
  );
});
