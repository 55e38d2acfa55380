/** Lost messages and unavailable servers: every event is still delivered. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { SIGNER_LIMITS } from "../../services/webhook-signer/limits.ts";
import { type Fleet, type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

let world: SignerWorld;
beforeAll(async () => {
  world = await startSignerWorld();
});
afterAll(() => world.stop());

const delivered = async ({ consumerId }: Fleet, { database } = world): Promise<number> => {
  const [row] = await database<[{ count: number }]>`
    select count(*)::int as count from webhook_deliveries where consumer_id = ${consumerId} and status = 'delivered'`;
  return row.count;
};

test("events that the bus has lost: taken from the outbox, and an unreadable one does not stop the others", async () => {
  // Only this test has a short interval. A signer reads it when it starts.
  const { sweepIntervalMs } = SIGNER_LIMITS;
  Object.assign(SIGNER_LIMITS, { sweepIntervalMs: 1_000 });
  const sweeping = await startSignerWorld().finally(() => Object.assign(SIGNER_LIMITS, { sweepIntervalMs }));
  onTestFinished(() => sweeping.stop());
  const fleet = await sweeping.openFleet();
  await sweeping.addEndpoint(fleet, "/lost");
  await sweeping.emit(fleet);
  await sweeping.emit(fleet);
  await sweeping.database`
    insert into outbox (key, kind, payload) values (${`filial.${fleet.filialId}`}, 'robotics_event', '{"event": {"eventType": "?"}}')`;
  // As if the relay had delivered them and the bus had lost them.
  await sweeping.database`update outbox set delivered_at = now() - interval '30 seconds'`;
  await waitFor("the deliveries", async () => (await delivered(fleet, sweeping)) === 2);
  const [row] = await sweeping.database<[{ count: number }]>`
    select count(*)::int as count from webhook_events where event_type = 'unreadable'`;
  expect(row.count).toBe(1);
});

test("connections to PostgreSQL that break repeatedly: no delivery is lost or left for longer than half a minute", async () => {
  const EVENTS = 1_000;
  const fleets = await Promise.all(Array.from({ length: 5 }, () => world.openFleet()));
  for (const [at, fleet] of fleets.entries()) await world.addEndpoint(fleet, `/broken/${at}`);
  const emitting = world.emitMany(fleets, EVENTS);
  for (let turn = 0; turn < 12; turn += 1) {
    await delay(250);
    await world.database`
      select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'device-payments webhook-signer' and datname = current_database()`;
  }
  await emitting;
  const startedAtMs = Date.now();
  await waitFor(
    "all of them",
    async () => {
      // Queries the database only after all have arrived: until then the database has enough other work.
      if (world.receiver.received.length < EVENTS) return false;
      const counts = await Promise.all(fleets.map((fleet) => delivered(fleet)));
      return counts.reduce((sum, count) => sum + count, 0) === EVENTS;
    },
    30_000,
  );
  expect(Date.now() - startedAtMs).toBeLessThan(30_000);
  const arrived = new Set(
    world.receiver.received.filter((one) => one.path.startsWith("/broken/")).map((one) => one.deliveryId),
  );
  expect(arrived.size).toBe(EVENTS);
  // An outcome whose answer was lost is written again, and counts once. An attempt that did not reach the receiver in
  // time is a record, too.
  const [row] = await world.database<[{ wrong: number; answered: number }]>`
    select count(*) filter (where d.attempts <> a.records)::int as wrong, sum(a.answered)::int as answered
    from webhook_deliveries d cross join lateral (
      select count(*)::int as records, count(a.status)::int as answered
      from webhook_attempts a where a.delivery_id = d.delivery_id
    ) a where d.consumer_id = any(${fleets.map(({ consumerId }) => consumerId)}::bigint[])`;
  expect(row.wrong).toBe(0);
  expect(row.answered).toBeLessThanOrEqual(
    world.receiver.received.filter((one) => one.path.startsWith("/broken/")).length,
  );
});

test("an outcome that cannot be stored: the others are stored, and its delivery is not sent repeatedly", async () => {
  const fleet = await world.openFleet();
  await world.addEndpoint(fleet, "/unstorable");
  await world.database`alter table webhook_attempts add constraint probe check (response_body <> 'poison')`;
  let poisoned = 0;
  world.receiver.behave("/unstorable", ({ deliveryId }) => {
    poisoned ||= deliveryId;
    return { status: 200, body: deliveryId === poisoned ? "poison" : "good" };
  });
  await world.emitMany([fleet], 20);
  await waitFor("the others", async () => (await delivered(fleet)) === 19);
  await delay(2_500);
  expect(world.receiver.at("/unstorable")).toHaveLength(20);
  await world.database`alter table webhook_attempts drop constraint probe`;
});

test("an endpoint's row that cannot be stored: all outcomes are stored, also those of this endpoint", async () => {
  const [broken, sound] = [await world.openFleet(), await world.openFleet()];
  const { endpointId } = await world.addEndpoint(broken, "/unstorable-row");
  await world.addEndpoint(sound, "/sound");
  world.receiver.behave("/unstorable-row", () => 500);
  await world.database.unsafe(`alter table webhook_endpoints add constraint probe
    check (endpoint_id <> ${endpointId} or consecutive_failures = 0)`);
  await world.emitMany([broken, sound], 6);
  await waitFor("the others", async () => (await delivered(sound)) === 3);
  const isCounted = async () => (await world.deliveries(broken)).every(({ attempts }) => attempts > 0);
  await waitFor("its own", isCounted);
  await world.database`alter table webhook_endpoints drop constraint probe`;
});

test("a bus that is unavailable for a time: due deliveries are sent meanwhile, and new events afterwards", async () => {
  const fleet = await world.openFleet();
  await world.addEndpoint(fleet, "/without-bus");
  world.receiver.behave("/without-bus", () => (world.receiver.at("/without-bus").length <= 3 ? 500 : 200));
  await world.emitMany([fleet], 3);
  await waitFor("the failures", () => world.receiver.at("/without-bus").length === 3);
  await world.nats.kill9();
  // The first retry, after 5 s, needs no bus.
  await waitFor("the retries", async () => (await delivered(fleet)) === 3);
  await world.nats.restart();
  await waitFor("the bus", () => world.bus.isUp());
  await world.emitMany([fleet], 3);
  await waitFor("the new ones", async () => (await delivered(fleet)) === 6);
});
