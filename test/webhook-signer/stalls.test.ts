/** A process that stalls for longer than its leases, and then continues: no delivery is sent twice, and each is sent. */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, type TestContext, test } from "vitest";
import { getWebhookEndpoint, registerWebhookEndpoint } from "../../services/bus/messages/webhook-endpoints.ts";
import { DATABASE_LIMITS } from "../../services/db/limits.ts";
import { SIGNER_LIMITS } from "../../services/webhook-signer/limits.ts";
import { type HoldingProxy, startHoldingProxy } from "./holding-proxy.ts";
import { holdAnswers, type SignerProcess, type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

const EVENTS = 100;
const LIMITS = { ownerLeaseMs: 2_000, leaseMarginMs: 500, ownerTurnMs: 300 };
const LONGER_MS = LIMITS.ownerLeaseMs + 1_000;
const SLEEPING_CLOCK = join(import.meta.dirname, "programs", "sleeping-clock.mjs");
const settings = { SIGNER_LIMITS: JSON.stringify(LIMITS) };
const asleep = { ...settings, NODE_OPTIONS: `${process.env["NODE_OPTIONS"] ?? ""} --import=${SLEEPING_CLOCK}` };

/** Tests run at the same time, so each has its own world. */
async function worldOf({ onTestFinished }: TestContext): Promise<SignerWorld> {
  const world = await startSignerWorld({ signers: 0 });
  onTestFinished(() => world.stop());
  return world;
}

async function begin(world: SignerWorld): Promise<void> {
  const fleet = await world.openFleet();
  await world.addEndpoint(fleet, "/one");
  world.receiver.behave("/one", () => ({ status: 200, afterMs: 100 }));
  await world.emitMany([fleet], EVENTS);
  await waitFor("the first ones", () => world.receiver.received.length > 20);
}

/** A process that waits for the proxy to open the connection of a delivery; the other events wait behind this delivery. */
async function beginHeld(
  context: TestContext,
  world: SignerWorld,
  events: number,
): Promise<{ readonly proxy: HoldingProxy; readonly signer: SignerProcess }> {
  const proxy = await startHoldingProxy(world.receiver);
  context.onTestFinished(() => proxy.stop());
  // It must not abandon a connection, however long the proxy holds it.
  const TARGET_LIMITS = JSON.stringify({ connectMs: 60_000, attemptMs: 60_000 });
  const signer = await world.addSignerProcess({ ...settings, TARGET_LIMITS });
  const fleet = await world.openFleet();
  await world.ask(registerWebhookEndpoint, {
    caller: fleet.owner,
    consumerId: fleet.consumerId,
    url: proxy.url("/one"),
  });
  await world.emitMany([fleet], events);
  // The signer opens one connection while it does not know how fast the target answers.
  await waitFor("its connection", () => proxy.waiting() === 1);
  return { proxy, signer };
}

const areDelivered = (world: SignerWorld) => async (): Promise<boolean> => (await world.countDelivered()) === EVENTS;

/** Blocks renewals while `during` runs. */
const withoutRenewals = (world: SignerWorld, during: () => Promise<void>): Promise<void> =>
  world.database.begin(async (sql) => {
    await sql`lock table webhook_signers in share mode`;
    await during();
  });
const isRenewalWaiting = (world: SignerWorld) => async (): Promise<boolean> =>
  (
    await world.database`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into webhook_signers%'`
  ).length > 0;

describe("a process that holds an owner", () => {
  test.concurrent("a stall while it renews its lease: it re-acquires the owner and sends each delivery once", async (context) => {
    const world = await worldOf(context);
    const signer = await world.addSignerProcess(settings);
    await begin(world);
    await withoutRenewals(world, async () => {
      await waitFor("a renewal", isRenewalWaiting(world));
      signer.freeze();
    });
    await delay(LONGER_MS);
    signer.signal("SIGCONT");
    await waitFor("all of them", areDelivered(world));
    expect(world.receiver.received).toHaveLength(EVENTS);
  });

  test.concurrent("a stall while another process sends some deliveries: it does not send these again", async (context) => {
    const world = await worldOf(context);
    const signer = await world.addSignerProcess(settings);
    await begin(world);
    await withoutRenewals(world, async () => {
      await waitFor("a renewal", isRenewalWaiting(world));
      signer.freeze();
    });
    const before = world.receiver.received.length;
    const unwritten = before - (await world.countDelivered());
    const other = await world.addSignerProcess(settings);
    await waitFor("the other's work", () => world.receiver.received.length > before + 40);
    await other.stop();
    signer.signal("SIGCONT");
    await waitFor("all of them", areDelivered(world));
    // These are the outcomes that were not written before the stop, and the requests in progress.
    const again = world.receiver.received.length - EVENTS;
    expect(again).toBeLessThanOrEqual(unwritten + SIGNER_LIMITS.inFlightPerEndpoint);
  });

  test.concurrent("a sleep of its machine: it sends no delivery that others have taken over meanwhile", async (context) => {
    const world = await worldOf(context);
    const sleeper = await world.addSignerProcess(asleep);
    await begin(world);
    // The process stops with every slot taken, so that it has nothing to write. It reads the answers when it continues.
    const sendAnswers = await holdAnswers(world.receiver, ["/one"]);
    sleeper.freeze();
    world.receiver.behave("/one", () => 200);
    sendAnswers();
    await world.addSignerProcess(settings);
    await waitFor("the others' work", areDelivered(world));
    const sent = world.receiver.received.length;
    await withoutRenewals(world, async () => {
      sleeper.signal("SIGCONT");
      await delay(700);
    });
    await delay(500);
    expect(world.receiver.received).toHaveLength(sent);
  });
});

describe("a process with a request under way", () => {
  test.concurrent("a stall while it opens a connection: it sends nothing that others have taken over", async (context) => {
    const world = await worldOf(context);
    const { proxy, signer: frozen } = await beginHeld(context, world, EVENTS);
    frozen.freeze();
    proxy.openForLater();
    await world.addSignerProcess(settings);
    await waitFor("the others' work", areDelivered(world));
    const sent = world.receiver.received.length;
    await withoutRenewals(world, async () => {
      proxy.openForAll();
      frozen.signal("SIGCONT");
      await delay(700);
    });
    await delay(500);
    expect(world.receiver.received).toHaveLength(sent);
  });

  test.concurrent("a stall while its target answers: what others have recorded about the target stays", async (context) => {
    const world = await worldOf(context);
    const stalled = await world.addSignerProcess(settings);
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, "/one");
    // One more failure would open its breaker for a long time, and disable it.
    await world.database`
    update webhook_endpoints set consecutive_failures = 4, times_opened = 5, failing_since = now() - interval '6 days',
      failures_since_success = 19 where endpoint_id = ${endpointId}`;
    const { promise: after, resolve: sendAnswer } = Promise.withResolvers<void>();
    world.receiver.behave("/one", () => ({ status: 500, after }));
    await world.emitMany([fleet], 1);
    await waitFor("its request", () => world.receiver.received.length === 1);
    stalled.freeze();
    world.receiver.behave("/one", () => 200);
    sendAnswer();
    await world.addSignerProcess(settings);
    const read = async () => (await world.ask(getWebhookEndpoint, { caller: fleet.owner, endpointId })).endpoint;
    const attemptsWith = async (error: string | null): Promise<number> => {
      const rows = await world.database`select from webhook_attempts where error is not distinct from ${error}`;
      return rows.length;
    };
    await waitFor("the others' work", async () => (await attemptsWith(null)) === 1);
    stalled.signal("SIGCONT");
    await waitFor("what it makes of the answer", async () => (await attemptsWith("status_not_success")) === 1);
    await delay(300);
    expect(await read()).toMatchObject({ status: "active", consecutiveFailures: 0, openUntilMs: null });
  });

  test.concurrent("a wait for PostgreSQL while it opens a connection: it sends nothing that others hold", async (context) => {
    const world = await worldOf(context);
    const { proxy } = await beginHeld(context, world, 1);
    // Long enough for the process to release its owners.
    await withoutRenewals(world, () => delay(DATABASE_LIMITS.lockTimeoutMs + LIMITS.ownerLeaseMs));
    await world.database`
    update webhook_owners set leased_by = ${randomUUID()}, leased_until = now() + interval '1 minute'`;
    await delay(LONGER_MS);
    proxy.openForAll();
    await delay(500);
    expect(world.receiver.received).toEqual([]);
  });
});
