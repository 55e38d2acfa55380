/**
 * Several processes share the work, and others take over from a process that dies (from one that stalls: `stalls.test.ts`).
 * The short form sends two hundred events while two processes are killed. The long form, of `npm run soak`, sends ten
 * thousand (KILLS_EVENTS) while five are killed.
 */
import { setTimeout as delay } from "node:timers/promises";
import { expect, type TestContext, test } from "vitest";
import { freePort } from "../support/free-port.ts";
import { metricSum, scrape } from "../support/scrape.ts";
import {
  type Fleet,
  SHORT_LEASES,
  type SignerProcess,
  type SignerWorld,
  startSignerWorld,
  waitFor,
} from "./signer-world.ts";

/** Tests run at the same time, so each has its own world. */
async function worldOf({ onTestFinished }: TestContext): Promise<SignerWorld> {
  const world = await startSignerWorld({ signers: 0 });
  onTestFinished(() => world.stop());
  return world;
}

/** Fleets, each with a target; their registration needs a process that answers. */
async function openFleets(world: SignerWorld, count: number, path: string): Promise<Fleet[]> {
  const fleets: Fleet[] = [];
  for (let at = 0; at < count; at += 1) {
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, `${path}/${at}`);
    fleets.push(fleet);
  }
  return fleets;
}

/** Queries the database only after as many have arrived: until then the database has enough other work. */
const areDelivered = async (world: SignerWorld, count: number): Promise<boolean> =>
  world.receiver.received.length >= count && (await world.countDelivered()) === count;

/** Statements of the signers that wait for a lock. */
async function waitingStatements(world: SignerWorld): Promise<number> {
  const rows = await world.database`
    select from pg_stat_activity
    where application_name = 'device-payments webhook-signer' and datname = current_database() and wait_event_type = 'Lock'`;
  return rows.length;
}

/** How often each delivery arrived. */
function arrivals(world: SignerWorld): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const { deliveryId } of world.receiver.received) counts.set(deliveryId, (counts.get(deliveryId) ?? 0) + 1);
  return counts;
}

/** Each delivery with its attempts, the oldest first. */
async function tries(world: SignerWorld, { consumerId }: Fleet): Promise<readonly Tried[]> {
  return await world.database<Tried[]>`
    select d.status, d.attempts, array_remove(array_agg(a.status order by a.attempt_id), null)::int[] as answers, d.due_at
    from webhook_deliveries d left join webhook_attempts a using (delivery_id)
    where d.consumer_id = ${consumerId} group by d.delivery_id order by d.delivery_id`;
}

interface Tried {
  readonly status: string;
  readonly attempts: number;
  readonly answers: readonly number[];
  readonly due_at: Date | null;
}

test.concurrent("three processes share the owners: no delivery is sent twice, although owners move", async (context) => {
  const world = await worldOf(context);
  await world.addSignerProcess(SHORT_LEASES);
  const fleets = await openFleets(world, 12, "/shared");
  await world.emitMany(fleets, 240);
  await world.addSignerProcess(SHORT_LEASES);
  await world.addSignerProcess(SHORT_LEASES);
  const holders = new Set<string>();
  let emitted = 240;
  for (let turn = 0; turn < 40 && holders.size < 3; turn += 1) {
    await world.emitMany(fleets, 60);
    emitted += 60;
    const rows = await world.database<{ leased_by: string }[]>`
      select distinct leased_by::text as leased_by from webhook_owners where leased_until > now()`;
    for (const { leased_by: holder } of rows) holders.add(holder);
    await delay(500);
  }
  await waitFor("all of them", () => areDelivered(world, emitted));
  expect(holders.size).toBe(3);
  expect(arrivals(world).size).toBe(emitted);
  expect(Math.max(...arrivals(world).values())).toBe(1);
});

test.concurrent("a killed process: another one continues its work within half a minute", async (context) => {
  const world = await worldOf(context);
  const EVENTS = 240;
  const first = await world.addSignerProcess();
  const fleets = await openFleets(world, 3, "/killed");
  for (let at = 0; at < 3; at += 1) world.receiver.behave(`/killed/${at}`, () => ({ status: 200, afterMs: 100 }));
  await world.emitMany(fleets, EVENTS);
  await waitFor("the first ones", () => world.receiver.received.length > 30);
  await first.kill9();
  const killedAtMs = Date.now();
  const sent = world.receiver.received.length;
  for (let at = 0; at < 3; at += 1) world.receiver.behave(`/killed/${at}`, () => 200);
  await world.addSignerProcess();
  await waitFor("all of them", () => areDelivered(world, EVENTS), 30_000);
  expect(Date.now() - killedAtMs).toBeLessThan(30_000);
  // Requests that were in progress are sent again, at most four of each endpoint, and those whose outcome was not written.
  expect(world.receiver.received.length - sent).toBeGreaterThan(0);
  expect(arrivals(world).size).toBe(EVENTS);
  // Attempts of the killed process have no known outcome, so they do not count.
  const all = (await Promise.all(fleets.map((fleet) => tries(world, fleet)))).flat();
  expect(all.filter(({ attempts, answers }) => attempts !== 1 || answers.length !== 1)).toEqual([]);
});

test.concurrent("a process that writes outcomes after a take-over: no success is lost or overwritten", async (context) => {
  const world = await worldOf(context);
  const EVENTS = 8;
  const metricsPort = await freePort();
  const old = await world.addSignerProcess({ ...SHORT_LEASES, METRICS_PORT: String(metricsPort) });
  const fleets = await openFleets(world, 3, "/late");
  const [succeeded, overtaken, failed] = fleets as [Fleet, Fleet, Fleet];
  // The answers that the old process receives, and those that the new one receives.
  const answers = [
    [200, 500],
    [500, 200],
    [500, 503],
  ] as const;
  for (const [at, [first, second]] of answers.entries()) {
    const seen = new Set<number>();
    world.receiver.behave(`/late/${at}`, ({ deliveryId }) => {
      if (seen.has(deliveryId)) return second;
      seen.add(deliveryId);
      return first;
    });
  }
  // The outcomes of the old process wait for these rows longer than PostgreSQL allows.
  const release = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const holding = world.database.begin(async (sql) => {
    await sql`lock table webhook_attempts in share mode`;
    held.resolve();
    await release.promise;
  });
  await held.promise;
  // Fewer than the failures that open a breaker.
  await world.emitMany(fleets, EVENTS + 1);
  await waitFor("the first attempts", () => world.receiver.received.length === EVENTS + 1);
  // An answer that the process has not read before it is frozen counts as a timeout later.
  await waitFor("the process to have read each answer", async () => {
    return metricSum(await scrape(metricsPort), "webhook_attempts_total") === EVENTS + 1;
  });
  await waitFor("its outcomes to wait", async () => (await waitingStatements(world)) > 0);
  old.freeze();
  // The statement that it has sent ends after its timeout in PostgreSQL.
  await waitFor("no statement of it to wait", async () => (await waitingStatements(world)) === 0);
  release.resolve();
  await holding;
  expect(
    (await Promise.all(fleets.map((fleet) => tries(world, fleet)))).flat().every(({ attempts }) => attempts === 0),
  ).toBe(true);
  await world.addSignerProcess(SHORT_LEASES);
  const isTried = ({ attempts }: Tried): boolean => attempts === 1;
  await waitFor("the new one's", async () =>
    (await Promise.all(fleets.map((fleet) => tries(world, fleet)))).flat().every(isTried),
  );
  const planned = (await tries(world, failed)).map((one) => one.due_at);
  // So that no delivery is due before the old process reports.
  const pausing = fleets.map(
    ({ organizationId }) => world.database`
    update webhook_deliveries set due_at = due_at + interval '1 hour' where organization_id = ${organizationId} and status = 'pending'`,
  );
  await Promise.all(pausing);
  old.signal("SIGCONT");
  const isReported = ({ attempts }: Tried): boolean => attempts === 2;
  await waitFor("the old one's", async () =>
    (await Promise.all(fleets.map((fleet) => tries(world, fleet)))).flat().every(isReported),
  );
  const each = { attempts: 2, due_at: null, status: "delivered" };
  expect(await tries(world, succeeded)).toEqual(Array.from({ length: 3 }, () => ({ ...each, answers: [200, 500] })));
  expect(await tries(world, overtaken)).toEqual(Array.from({ length: 3 }, () => ({ ...each, answers: [500, 200] })));
  const later = planned.map((dueAt) => new Date((dueAt?.getTime() ?? 0) + 3_600_000));
  expect(await tries(world, failed)).toEqual(
    later.map((due_at) => ({ attempts: 2, due_at, status: "pending", answers: [500, 503] })),
  );
  expect(world.receiver.received).toHaveLength((EVENTS + 1) * 2);
});

test.concurrent("many events while processes are killed at random: each is delivered, none is lost", async (context) => {
  const world = await worldOf(context);
  const EVENTS = Number(process.env["KILLS_EVENTS"] ?? 200);
  const KILLS = EVENTS > 200 ? 5 : 2;
  const processes: SignerProcess[] = [
    await world.addSignerProcess(SHORT_LEASES),
    await world.addSignerProcess(SHORT_LEASES),
  ];
  const fleets = await openFleets(world, 20, "/chaos");
  const emitting = world.emitMany(fleets, EVENTS);
  for (let kill = 0; kill < KILLS; kill += 1) {
    await delay(200 + Math.random() * 1_800);
    const victim = processes.shift();
    await victim?.kill9();
    processes.push(await world.addSignerProcess(SHORT_LEASES));
  }
  await emitting;
  await waitFor("all of them", () => areDelivered(world, EVENTS));
  const [row] = await world.database<[{ events: number; deliveries: number }]>`
    select (select count(*)::int from webhook_events) as events, (select count(*)::int from webhook_deliveries) as deliveries`;
  expect(row).toEqual({ events: EVENTS, deliveries: EVENTS });
  expect(arrivals(world).size).toBe(EVENTS);
});
