/** Which secrets sign during a rotation: those at the moment when an attempt begins, not those read earlier. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rotateWebhookSecret } from "../../services/bus/messages/webhook-endpoints.ts";
import { operationsGuide } from "../support/guide.ts";
import { expectedSignature, parseSignature, type Received } from "./receiver.ts";
import { begunAfter, type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

let world: SignerWorld;
beforeAll(async () => {
  world = await startSignerWorld();
});
afterAll(() => world.stop());

const DAY_MS = 86_400_000;

const isSignedBy = (secret: string, { signature, body }: Received): boolean => {
  const { t, v1 } = parseSignature(signature);
  return v1.includes(expectedSignature(secret, t, body));
};

test.each([
  ["without an overlap", 0],
  ["with an overlap", DAY_MS],
])("a rotation %s counts at once, although many deliveries were read long before", async (_name, overlapMs) => {
  const path = `/rotated-${overlapMs}`;
  const fleet = await world.openFleet();
  const { endpointId, secret } = await world.addEndpoint(fleet, path);
  world.receiver.behave(path, () => ({ status: 200, afterMs: 60 }));
  await world.emitMany([fleet], 320);
  await waitFor("some", () => world.receiver.at(path).length >= 100);
  const rotated = await world.ask(rotateWebhookSecret, { caller: fleet.owner, endpointId, overlapMs });
  const atMs = Date.now();
  await waitFor("all", async () => {
    if (world.receiver.at(path).length < 320) return false;
    const rows = await world.database`
        select from webhook_deliveries where consumer_id = ${fleet.consumerId} and status = 'delivered'`;
    return rows.length === 320;
  });
  const begun = await begunAfter(world, fleet, atMs + 250);
  const late = world.receiver.at(path).filter(({ deliveryId }) => begun.has(deliveryId));
  expect(late.length).toBeGreaterThan(50);
  expect(late.filter((one) => !isSignedBy(rotated.secret, one))).toEqual([]);
  expect(late.filter((one) => isSignedBy(secret, one))).toHaveLength(overlapMs === 0 ? 0 : late.length);
});

test("a rotation whose notice is lost counts within a second", async () => {
  const fleet = await world.openFleet();
  const { endpointId, secret } = await world.addEndpoint(fleet, "/unnoticed");
  const answer = { afterMs: 60 };
  world.receiver.behave("/unnoticed", () => ({ status: 200, ...answer }));
  await world.emitMany([fleet], 300);
  await waitFor("some", () => world.receiver.at("/unnoticed").length >= 150);
  answer.afterMs = 700;
  // As another process does while the bus is unavailable: in PostgreSQL only.
  await world.database`update webhook_secrets set expires_at = now() where endpoint_id = ${endpointId}`;
  const atMs = Date.now();
  await delay(3_500);
  const begun = await begunAfter(world, fleet, atMs + 1_500);
  const late = world.receiver.at("/unnoticed").filter(({ deliveryId }) => begun.has(deliveryId));
  expect(late.filter((one) => isSignedBy(secret, one))).toEqual([]);
});

test("a secret copied to another endpoint's row: cannot be opened there, and signs nothing", async () => {
  const [mine, theirs] = [await world.openFleet(), await world.openFleet()];
  const [a, b] = [await world.addEndpoint(mine, "/swapped-a"), await world.addEndpoint(theirs, "/swapped-b")];
  const ids = [a.endpointId, b.endpointId];
  // PostgreSQL checks row by row that the current secret is unique, so one of them is not current meanwhile.
  await world.database.begin(async (sql) => {
    const rows = await sql<{ secret_id: number }[]>`
      select secret_id from webhook_secrets where endpoint_id = any(${ids}::bigint[]) order by endpoint_id`;
    const [first, second] = rows.map((row) => row.secret_id);
    await sql`update webhook_secrets set expires_at = now() + interval '1 hour' where secret_id = ${first ?? 0}`;
    await sql`update webhook_secrets set endpoint_id = ${a.endpointId} where secret_id = ${second ?? 0}`;
    await sql`update webhook_secrets set endpoint_id = ${b.endpointId}, expires_at = null where secret_id = ${first ?? 0}`;
  });
  await world.emitMany([mine, theirs], 2);
  for (const fleet of [mine, theirs]) {
    const { attempts } = await waitFor("its attempt", async () => {
      const [one] = await world.deliveries(fleet);
      return one?.attempts === 1 && (await world.ownDelivery(fleet, one.deliveryId));
    });
    expect(attempts[0]).toMatchObject({ error: "secret_unreadable", address: null, status: null });
  }
  expect([...world.receiver.at("/swapped-a"), ...world.receiver.at("/swapped-b")]).toEqual([]);
});

test("the guide's recovery from a lost key: a delivery waits, and is sent once its owner has replaced the secret", async () => {
  const fleet = await world.openFleet();
  const { endpointId } = await world.addEndpoint(fleet, "/lost-key");
  const [, statement = ""] = /psql .* -c '(delete from webhook_secrets)'/.exec(operationsGuide) ?? [];
  await world.database.unsafe(statement);
  await world.emitMany([fleet], 1);
  const { deliveryId, attempts } = await waitFor("its attempt", async () => {
    const [one] = await world.deliveries(fleet);
    return one?.attempts === 1 && (await world.ownDelivery(fleet, one.deliveryId)) && one;
  });
  const { secret } = await world.ask(rotateWebhookSecret, { caller: fleet.owner, endpointId, overlapMs: 0 });
  await world.hurry(fleet);
  const [received] = await waitFor("the delivery", () => {
    const all = world.receiver.at("/lost-key");
    return all.length > 0 && all;
  });
  expect({ attempts, deliveryId }).toEqual({ attempts: 1, deliveryId: received?.deliveryId });
  expect(received !== undefined && isSignedBy(secret, received)).toBe(true);
});
