/**
 * Collections, some of them by QR, while the actor host, the gateway, the services, the providers service, the payment
 * provider, nats-server and PostgreSQL are killed with SIGKILL and restarted at moments that a seed selects. No acknowledged
 * step is lost, no order is paid twice, no task is stuck, and each payment at the provider has an order or an issue.
 * At the end, in the same world, a repeated command gets the bytes of its first answer, apart from the request id of an error:
 * one at a time, ten at once, and after kill -9 of everything at the same moment (I6 in machines/SPEC.md).
 *
 *   npx vitest run test/chaos/kill.test.ts                                  # 12 collections and 36 by QR; each process is killed once
 *   CHAOS_COLLECTIONS=2000 npx vitest run test/chaos/kill.test.ts           # a long night; `npm run soak` does 200
 *   CHAOS_SEED=42 npx vitest run test/chaos/kill.test.ts                    # the plans and strikes of an earlier run
 *   CHAOS_LOGS=/tmp/logs npx vitest run test/chaos/kill.test.ts             # keeps what the processes logged
 *
 * The seed selects what is collected, and what is killed after how many steps. The exact moment of a kill depends on the
 * machine, so a failure may need a few runs of its seed.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { formatAmount } from "../../machines/currency.ts";
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import { AnsweredCommands } from "./answered-commands.ts";
import type { ChaosStation } from "./chaos-world.ts";
import { collect } from "./collection.ts";
import type { Collection, CollectionDeps } from "./collection-facts.ts";
import { abandonedPlan, type CollectionPlan, drawPlan } from "./collection-plan.ts";
import { type FinalCheck, runFinalCheck } from "./final-check.ts";
import { type ProviderWorld, startProviderWorld } from "./provider-world.ts";
import { collectByQr, OUTAGE_REASONS } from "./qr-collection.ts";
import { abandonedQrPlan, drawQrPlans, isQr, type QrPlan, qrPlan } from "./qr-plan.ts";
import { Random } from "./random.ts";
import { RetryingClient } from "./retrying-client.ts";
import { Strikes, TARGETS } from "./strikes.ts";

const COLLECTIONS = Number(process.env.CHAOS_COLLECTIONS ?? "12");
/** The short form ends its strikes when each process was killed, because starts of processes take most of its time. */
const MOST_KILLS = process.env.CHAOS_COLLECTIONS === undefined ? TARGETS.length : Infinity;
/** Twice the longest pause before a failed cancellation is tried again, and time for the attempt. */
const SETTLED_MS = 2 * PROVIDER_LIMITS.longestWithdrawPauseMs + 15_000;
const SEED = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);
/** Stations whose first collection waits for its deadline, which passes during the kills. */
const ABANDONED = 3;
/** The number of QR collections besides the others. With fewer, all collections of some kinds would end by outages. */
const QR_COLLECTIONS = Math.max(36, Math.round(COLLECTIONS * 0.36));
/** Each companion may send one request a second. With so many stations, the kills take most of the time. */
const STATIONS = Math.min(24, Math.ceil((COLLECTIONS + QR_COLLECTIONS) / 9));
/** When a kind has at least this number of collections, not all of them end by an outage. */
const FEWEST_OF_A_KIND = 4;
/** Stations whose first collection is a QR that waits for its deadline. */
const QR_ABANDONED = 2;
const HEARTBEAT_MS = 8_000;
/** A strike takes a few seconds, and there are fewer strikes than collections. */
const TIMEOUT_MS = 120_000 + COLLECTIONS * 2_000;

let world: ProviderWorld;
let collections: readonly Collection[] = [];
let afterwards: readonly Collection[] = [];
let finalCheck: FinalCheck;
const retrying = new RetryingClient();
const hearts = new AbortController();
let strikes: Strikes;

beforeAll(async () => {
  world = await startProviderWorld(STATIONS, new Random(SEED + 2));
}, 120_000);

afterAll(async () => {
  hearts.abort();
  const folder = process.env.CHAOS_LOGS;
  if (folder !== undefined) {
    mkdirSync(folder, { recursive: true });
    for (const target of TARGETS) writeFileSync(join(folder, `${target}.log`), logOf(target));
  }
  await world.stop();
}, 120_000);

/** The log of a process. It is empty for the servers, which have separate logs. */
function logOf(piece: string): string {
  if (piece === "stations" || piece === "gateway") return world.system.log(piece);
  if (piece === "services" || piece === "providers" || piece === "sandboxProvider")
    return world.provider.divided.log(piece);
  return "";
}

interface OpenOrders {
  readonly orders: readonly { readonly order_display_number: number }[];
}
interface Shown {
  readonly order_display_number: number;
}

describe(`${COLLECTIONS} collections under repeated kill -9 (CHAOS_SEED=${SEED})`, () => {
  it("all collections reach the planned end, with one answer to each command", {
    timeout: TIMEOUT_MS,
  }, async () => {
    const startedAtMs = performance.now();
    const random = new Random(SEED);
    const plans = drawPlans(random);
    strikes = new Strikes(world.pieces, logOf, { random: new Random(SEED + 1), mostKills: MOST_KILLS });
    const deps: CollectionDeps = { world, retrying, step: () => strikes.step() };
    for (const station of world.stations) void beat(station.companion);
    const perStation = await Promise.all(plans.map((own, index) => collectAll(deps, index, own)));
    await strikes.end();
    world.provider.witness.calm();
    collections = perStation.flat();
    expect(collections.length).toBeGreaterThanOrEqual(COLLECTIONS + QR_COLLECTIONS);
    const results = {
      seed: SEED,
      collections: COLLECTIONS,
      byQr: qrEnds(),
      kills: Object.fromEntries(strikes.counts),
      longestDownMs: Math.round(strikes.longestDownMs),
      longestOutageMs: Math.round(retrying.longestOutageMs),
      failures: Object.fromEntries(retrying.failures),
      tookMs: Math.round(performance.now() - startedAtMs),
    };
    process.stderr.write(`kill -9: ${JSON.stringify(results)}\n`);
  });

  it("all strikes: every process was killed at least once", () => {
    for (const target of TARGETS) expect(strikes.counts.get(target), target).toBeGreaterThan(0);
  });

  it("each kind of QR collection reaches its planned end at least once, not only the end by an outage", () => {
    const all = collections.flatMap(({ plan, endReason }) => (isQr(plan) ? [{ ...plan, endReason }] : []));
    // Outages may end all collections of a kind with few collections.
    const counts = new Map<string, number>();
    for (const { ending } of all) counts.set(ending, (counts.get(ending) ?? 0) + 1);
    const wanted = [...counts].filter(([, count]) => count >= FEWEST_OF_A_KIND).map(([ending]) => ending);
    expect(wanted.length).toBeGreaterThanOrEqual(3);
    const reached = all.filter(({ endReason }) => !OUTAGE_REASONS.includes(endReason ?? ""));
    const endings = reached.map(({ ending }) => ending);
    for (const ending of wanted) expect(endings).toContain(ending);
    expect(reached.length).toBeGreaterThan(QR_COLLECTIONS / 2);
  });

  it("every station is ready: the next collection is paid and each display shows it", {
    timeout: 60_000,
  }, async () => {
    const deps: CollectionDeps = { world, retrying: new RetryingClient(), step: () => undefined };
    const byQr = qrPlan(new Random(SEED), { scenario: "approve", ending: "qr_paid" });
    const plan: CollectionPlan = {
      route: "smart_pos",
      outcomes: ["reported_success"],
      ending: "paid",
      twice: false,
      amountMinor: 1_234,
    };
    afterwards = await Promise.all(
      world.stations.map(async (station, index) => {
        const collection = await collect(deps, station, plan, `calm-${index}`);
        const shown = await station.display.good("GET", "display/");
        expect(shown).toMatchObject({ state: "paid", amount: "12.34", intent_status: "succeeded", qr_payload: "" });
        const qr = await collectByQr(deps, station, byQr, `calm-qr-${index}`);
        const after = await deps.retrying.call(station.display, "GET", "display/");
        const amount = formatAmount(BigInt(byQr.amountMinor), "EUR");
        expect(after.body).toMatchObject({ state: "paid", amount, intent_status: "succeeded", qr_payload: "" });
        expect(qr.intentStatus).toBe("succeeded");
        return [collection, qr];
      }),
    ).then((pairs) => pairs.flat());
    await delay(8_500);
    for (const station of world.stations) {
      // An unpaid order can still be collected, so the display shows it again.
      const { orders } = await world.cashier.good<OpenOrders>("GET", `${station.path}/orders/?status=open`);
      const shown = await station.display.good<Shown>("GET", "display/");
      if (orders.length === 0) expect(shown).toMatchObject({ state: "idle", amount: "0.00" });
      else {
        expect(shown).toMatchObject({ state: "total", intent_status: "" });
        expect(orders.map((order) => order.order_display_number)).toContain(shown.order_display_number);
      }
      expect(await deps.retrying.call(station.companion, "GET", "assignment/")).toMatchObject({
        status: 200,
        body: { assignment: null },
      });
    }
  });

  it("every keyed command is repeated: it gets its first answer, byte for byte", { timeout: 120_000 }, async () => {
    const calm = new RetryingClient();
    const cashiers = collections.flatMap(({ kept }) => kept.filter(({ client }) => client === world.cashier));
    const reports = world.stations.flatMap(({ companion }) =>
      collections.flatMap(({ kept }) => kept.filter(({ client }) => client === companion)).slice(-2),
    );
    const different: string[] = [];
    await Promise.all(
      [cashiers, reports].map(async (commands) => {
        for (const { client, path, request, status, text } of commands) {
          const again = await calm.call(client, "POST", path, request);
          if (again.status !== status || again.text !== text) different.push(`${path}\n  ${text}\n  ${again.text}`);
        }
      }),
    );
    expect(cashiers.length).toBeGreaterThan(COLLECTIONS * 2);
    expect(different).toEqual([]);
  });

  it("every callback is repeated: it gets its first answer, byte for byte", { timeout: 60_000 }, async () => {
    const { witness, callbackSecret } = world.provider;
    expect(await witness.replay(callbackSecret)).toEqual([]);
    expect(witness.callbacks.size).toBeGreaterThan(QR_COLLECTIONS / 2);
  });

  it("every acknowledged step is in log and audit copy, every order is paid once or unpaid for a known reason, nothing is stuck", async () => {
    finalCheck = await vi.waitFor(
      async () => {
        const found = await runFinalCheck(world, [...collections, ...afterwards]);
        expect(found.complaints).toEqual([]);
        return found;
      },
      { timeout: SETTLED_MS, interval: 1_000 },
    );
    const { sumMinor, complaints, ...results } = finalCheck;
    expect(complaints).toEqual([]);
    process.stderr.write(`kill -9: ${JSON.stringify({ ...results, sumMinor: String(sumMinor) })}\n`);
    expect(results.paidOrders).toBeGreaterThan(COLLECTIONS / 2);
    expect(results.provider.payments).toBeGreaterThan(QR_COLLECTIONS / 2);
  });
});

describe("a command repeated with the same key", () => {
  let commands: AnsweredCommands;
  beforeAll(() => {
    commands = new AnsweredCommands(world.cashier);
  });
  const stationOf = (index: number): ChaosStation => {
    const station = world.stations[index];
    if (station === undefined) throw new Error(`There is no station ${index}.`);
    return station;
  };

  it("order, collection, report and attestation: each repetition gets the first answer", async () => {
    expect(await commands.settle(stationOf(0))).toMatchObject({ status: "succeeded", report_count: 1 });
  });

  it("a cancelled collection and a refused attestation: each repetition gets the first answer", async () => {
    expect(await commands.cancel(stationOf(1))).toMatchObject({ status: "cancelled" });
    const refused = await commands.attestChangedOrder(stationOf(2));
    expect(refused).toMatchObject({ code: "order_changed", status: "processing" });
  });

  it("kill -9 and restart of every process, nats-server and PostgreSQL: ten repetitions at once get the first answer", async () => {
    const { nats, postgres, ...processes } = world.pieces;
    await Promise.all(Object.values(world.pieces).map((each) => each.kill9()));
    await Promise.all([nats.restart(), postgres.restart()]);
    await Promise.all(Object.values(processes).map((each) => each.restart()));
    await vi.waitUntil(() => world.system.bus.isUp(), { timeout: 10_000 });
    expect(commands.titles).toHaveLength(11);
    await commands.repeatAll();
  });
});

/** The number of QR collections by the way in which they ended. */
function qrEnds(): Readonly<Record<string, number>> {
  const ends: Record<string, number> = {};
  for (const { plan, intentStatus, endReason } of collections) {
    if (!isQr(plan)) continue;
    const end = `${plan.ending} ${endReason === "" ? intentStatus : endReason}`;
    ends[end] = (ends[end] ?? 0) + 1;
  }
  return ends;
}

type Plan = CollectionPlan | QrPlan;

/** The plans of each station's collections, in their order. */
function drawPlans(random: Random): Plan[][] {
  const first: Plan[] = [
    ...Array.from({ length: ABANDONED }, () => abandonedPlan(random)),
    ...Array.from({ length: QR_ABANDONED }, (_, nth) => abandonedQrPlan(random, nth)),
  ];
  const others = random.shuffled<Plan>([
    ...Array.from({ length: COLLECTIONS - ABANDONED }, () => drawPlan(random)),
    ...drawQrPlans(random, QR_COLLECTIONS - QR_ABANDONED),
  ]);
  const plans: Plan[][] = world.stations.map(() => []);
  for (const [count, plan] of [...first, ...others].entries()) plans[count % STATIONS]?.push(plan);
  return plans;
}

async function collectAll(deps: CollectionDeps, index: number, plans: readonly Plan[]): Promise<Collection[]> {
  const station = world.stations[index];
  if (station === undefined) throw new Error(`There is no station ${index}.`);
  const done: Collection[] = [];
  // There are more than the planned collections when restarts took so long that some process was not killed yet.
  for (let count = 0; count < plans.length || strikes.total < TARGETS.length; count += 1) {
    const plan = plans[count] ?? drawPlan(new Random(SEED + index * COLLECTIONS + count));
    const name = `${index}-${count}`;
    const ended = await (isQr(plan) ? collectByQr(deps, station, plan, name) : collect(deps, station, plan, name));
    done.push(ended);
    // During an outage of the provider, a collection fails at once. Without this pause, one outage would end all of them.
    if (OUTAGE_REASONS.includes(ended.endReason ?? "")) await strikes.restarted();
  }
  return done;
}

/** Sends regular heartbeats. It does not repeat a failed one, because the next one follows. */
async function beat(companion: Collection["station"]["companion"]): Promise<void> {
  while (!hearts.signal.aborted) {
    await companion.call("POST", "heartbeat/", { body: {} }).catch((error: unknown) => {
      if (!(error instanceof TypeError)) throw error;
    });
    await delay(HEARTBEAT_MS, undefined, { signal: hearts.signal }).catch(() => undefined);
  }
}
