/** A process whose clock is wrong: it signs and writes with PostgreSQL's time, and logs the difference. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { getWebhookEndpoint, testWebhookEndpoint } from "../../services/bus/messages/webhook-endpoints.ts";
import { parseSignature } from "./receiver.ts";
import { type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

let world: SignerWorld;
beforeAll(async () => {
  world = await startSignerWorld({ signers: 0 });
});
afterAll(() => world.stop());

const PROGRAM = join(import.meta.dirname, "programs", "wrong-clock.mjs");

test.each([
  ["ahead", 600_000],
  ["behind", -600_000],
])(
  "a clock 10 minutes %s: signatures, attempts, breakers and due times are right, and the log names the difference",
  async (name, ms) => {
    const NODE_OPTIONS = `${process.env["NODE_OPTIONS"] ?? ""} --import=${PROGRAM}`;
    const signer = await world.addSignerProcess({ NODE_OPTIONS, WRONG_CLOCK_MS: String(ms) });
    expect(readFileSync(signer.logFile, "utf8")).toMatch(/"level":(?:50|"error").*THE CLOCK OF THIS MACHINE IS WRONG/);
    const path = `/clock-${name}`;
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, path);
    world.receiver.behave(path, () => 500);
    await world.emitMany([fleet], 6);
    const request = { caller: fleet.owner, endpointId };
    const { endpoint } = await waitFor("the open breaker", async () => {
      const read = await world.ask(getWebhookEndpoint, request);
      return read.endpoint.openUntilMs !== null && read;
    });
    const openMs = (endpoint.openUntilMs ?? 0) - Date.now();
    expect(openMs).toBeGreaterThan(20_000);
    expect(openMs).toBeLessThan(31_000);
    for (const got of world.receiver.at(path)) {
      expect(Math.abs(parseSignature(got.signature).t - got.atMs / 1_000)).toBeLessThan(3);
    }
    const rows = await world.database<{ delivery_id: number; started_at: Date; failing_since: Date }[]>`
    select d.delivery_id, a.started_at, e.failing_since
    from webhook_attempts a join webhook_deliveries d using (delivery_id) join webhook_endpoints e using (endpoint_id)
    where d.consumer_id = ${fleet.consumerId}`;
    const [first] = world.receiver.at(path);
    for (const { delivery_id: deliveryId, started_at: startedAt, failing_since: failingSince } of rows) {
      const got = world.receiver.at(path).find((one) => one.deliveryId === deliveryId);
      expect(Math.abs(startedAt.getTime() - (got?.atMs ?? 0))).toBeLessThan(3_000);
      expect(Math.abs(failingSince.getTime() - (first?.atMs ?? 0))).toBeLessThan(6_000);
    }
    expect(rows.length).toBeGreaterThan(4);
    const { delivery } = await world.ask(testWebhookEndpoint, request);
    const { created_at: createdAt } = JSON.parse(delivery.body) as { created_at: string };
    expect(Math.abs(Date.parse(createdAt) - Date.now())).toBeLessThan(3_000);
    await signer.stop();
  },
  40_000,
);
