/**
 * A kill -9 of the signer at each step of its work. A lock in PostgreSQL, or a target that does not answer, holds the signer
 * at the step, and the test checks this before the kill. Other work continues meanwhile. The short form has two hundred
 * events, the long form ten thousand (KILLS_EVENTS=10000). `processes.test.ts` kills at random.
 */
import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type Fleet,
  SHORT_LEASES,
  type SignerProcess,
  type SignerWorld,
  startSignerWorld,
  waitFor,
} from "./signer-world.ts";

const EVENTS = Number(process.env["KILLS_EVENTS"] ?? 200);
const FLEETS = 20;
/** At a kill at most all slots of each owner are in use. */
const MAX_SENT_AGAIN = FLEETS * 16;

let world: SignerWorld;
let fleets: Fleet[];
/** Fleets of owners that have work at one step only. */
let rested: Fleet[];
beforeAll(async () => {
  world = await startSignerWorld({ signers: 0 });
});
afterAll(() => world.stop());

/** Holds a table until the returned function is called; on a connection without the deadlines that the services have. */
async function hold(table: string, mode: string): Promise<() => Promise<void>> {
  const connection = postgres(world.databaseUrl, { max: 1 });
  const held = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const holding = connection.begin(async (sql) => {
    await sql.unsafe(`lock table ${table} in ${mode} mode`);
    held.resolve();
    await release.promise;
  });
  await Promise.race([held.promise, holding]);
  return async () => {
    release.resolve();
    await holding;
    await connection.end();
  };
}

/** Whether a statement of the signer waits for a lock now. */
async function waitsIn(pattern: string): Promise<boolean> {
  const rows = await world.database`
    select from pg_stat_activity
    where application_name = 'device-payments webhook-signer' and datname = current_database() and wait_event_type = 'Lock'
      and query ilike ${pattern}`;
  return rows.length > 0;
}

const hanging = new Set<number>();
function behave(isAnswering: boolean): void {
  for (let at = 0; at < FLEETS; at += 1) {
    world.receiver.behave(`/steps/${at}`, ({ deliveryId }) => {
      if (isAnswering) return 200;
      hanging.add(deliveryId);
      return "hang";
    });
  }
}

/** Each function brings a process to a step and holds it there. The returned function, called after the kill, ends this. */
const STEPS: Readonly<
  Record<string, (signer: SignerProcess, emit: (to?: readonly Fleet[]) => Promise<void>) => Promise<() => unknown>>
> = {
  "its events are written, and the transaction is open": async (_signer, emit) => {
    const release = await hold("webhook_deliveries", "share");
    await emit();
    await waitFor("the writing", () => waitsIn("%insert into webhook_deliveries%"));
    return release;
  },
  "an owner's lease is taken, and no delivery has been read for it": async (_signer, emit) => {
    const releaseOwners = await hold("webhook_owners", "share");
    // No process holds these owners yet.
    await emit(rested);
    await waitFor("their deliveries", async () => (await pendingOf(rested)) > 0);
    const release = await hold("webhook_secrets", "access exclusive");
    await releaseOwners();
    await waitFor("the lease", async () => {
      const rows = await world.database`
        select from webhook_owners where leased_until > now()
          and organization_id = any(${rested.map((fleet) => fleet.organizationId)}::bigint[])`;
      return rows.length > 0 && (await waitsIn("%webhook_secrets%"));
    });
    return release;
  },
  "requests are under way": async (_signer, emit) => {
    behave(false);
    hanging.clear();
    await emit();
    await waitFor("requests", () => hanging.size >= FLEETS / 2);
    return () => behave(true);
  },
  "targets have answered, and the outcomes are not written": async (_signer, emit) => {
    const release = await hold("webhook_attempts", "share");
    const before = world.receiver.received.length;
    await emit();
    await waitFor("answers", () => world.receiver.received.length >= before + FLEETS / 2);
    await waitFor("the writing", () => waitsIn("%counted as (%"));
    return release;
  },
  "it is stopping, and waits for requests under way": async (signer, emit) => {
    behave(false);
    hanging.clear();
    await emit();
    await waitFor("requests", () => hanging.size >= FLEETS / 2);
    signer.signal("SIGTERM");
    await delay(1_000);
    const before = hanging.size;
    await delay(500);
    // It starts no new request, and it still runs: it holds the owners.
    expect(hanging.size).toBe(before);
    const rows = await world.database`select from webhook_owners where leased_until > now()`;
    expect(rows.length).toBeGreaterThan(0);
    return () => behave(true);
  },
};

async function pendingOf(some: readonly Fleet[]): Promise<number> {
  const [row] = await world.database<[{ count: number }]>`
    select count(*)::int as count from webhook_deliveries
    where status = 'pending' and organization_id = any(${some.map((fleet) => fleet.organizationId)}::bigint[])`;
  return row.count;
}

test("a signer that is killed at each step: it loses no event, and sends only the requests in progress again", async () => {
  let signer = await world.addSignerProcess(SHORT_LEASES);
  fleets = await Promise.all(Array.from({ length: FLEETS }, () => world.openFleet()));
  for (const [at, fleet] of fleets.entries()) await world.addEndpoint(fleet, `/steps/${at}`);
  rested = await Promise.all(Array.from({ length: 5 }, () => world.openFleet()));
  for (const [at, fleet] of rested.entries()) await world.addEndpoint(fleet, `/rested/${at}`);
  behave(true);
  const names = Object.keys(STEPS);
  const each = Math.ceil(EVENTS / names.length / 2);
  let emitted = 0;
  for (const name of names) {
    const step = STEPS[name];
    const emit = async (to: readonly Fleet[] = fleets): Promise<void> => {
      emitted += each;
      await world.emitMany(to, each);
    };
    // Work of every kind exists when the step is reached.
    await emit();
    if (step === undefined) return;
    const release = await step(signer, emit);
    await signer.kill9();
    await release();
    const killedAtMs = Date.now();
    signer = await world.addSignerProcess(SHORT_LEASES);
    await waitFor(
      `all, after it was killed when ${name}`,
      async () => world.receiver.received.length >= emitted && (await world.countDelivered()) === emitted,
    );
    expect(Date.now() - killedAtMs, name).toBeLessThan(30_000);
  }
  const [row] = await world.database<[{ events: number; deliveries: number; wrong: number }]>`
    select (select count(*)::int from webhook_events) as events, count(*)::int as deliveries,
      (count(*) filter (where attempts <> (select count(*) from webhook_attempts a where a.delivery_id = d.delivery_id)
        or not exists (select from webhook_attempts a where a.delivery_id = d.delivery_id and a.status = 200)))::int as wrong
    from webhook_deliveries d`;
  expect(row).toEqual({ events: emitted, deliveries: emitted, wrong: 0 });
  const arrived = new Map<number, number>();
  for (const { deliveryId } of world.receiver.received) arrived.set(deliveryId, (arrived.get(deliveryId) ?? 0) + 1);
  expect(arrived.size).toBe(emitted);
  const again = world.receiver.received.length - arrived.size;
  expect(again).toBeGreaterThan(0);
  expect(again).toBeLessThan(names.length * MAX_SENT_AGAIN);
  for (const fleet of fleets) {
    const ids = (await world.deliveries(fleet)).map((one) => one.deliveryId);
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
  }
}, 400_000);
