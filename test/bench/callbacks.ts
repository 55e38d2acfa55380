/**
 * Measures two things. Callback → `paid`: the time from sending a callback to the gateway until its station's display shows
 * `paid`. And how many callbacks per second the gateway and the providers service take. The control is a bare handler that
 * verifies the same signature and inserts one row into the same PostgreSQL.
 */
import { setTimeout as delay } from "node:timers/promises";
import { benchOwner } from "./bench-owner.ts";
import { type BenchResult, wholeNumber } from "./bench-result.ts";
import type { BenchWorld } from "./bench-world.ts";
import { type BurstMeasurement, measureBursts } from "./callback-bursts.ts";
import {
  CPU_USERS,
  type CpuTimes,
  type Latency,
  latency,
  type Parties,
  requireAllAnswered200,
  startParties,
} from "./callback-parties.ts";
import { watchDisplays } from "./display-watch.ts";
import { HttpConnection } from "./load/http-connection.ts";
import { DISPLAY_PATH } from "./polls.ts";
import { type Counter, forControl, makeCounters, type PaidCallback, presentQr, type QrPlan } from "./qr-counters.ts";

export interface CallbackPlan {
  /** Collections of one station, one after the other. */
  readonly serialCollections: number;
  /** Stations that are all paid at the same moment, `collectionsEach` times. */
  readonly stationsAtOnce: number;
  readonly collectionsEach: number;
  /** Stations of a burst: each has one registered payment when the callbacks begin. */
  readonly burstStations: number;
  readonly burstRounds: number;
}

export interface Paid {
  readonly untilPaid: Latency;
  /** From sending the callback until the provider has received the answer 200. */
  readonly untilAnswer: Latency;
  readonly control: Latency;
}

export interface CallbackMeasurement {
  readonly serial: Paid;
  readonly atOnce: Paid & { readonly stations: number };
  readonly burst: BurstMeasurement;
}

const WARM_COLLECTIONS = 30;
/** After this many collections of the product the control gets the same callbacks. */
const BLOCK = 50;
/** The pause between QR and callback. A guest takes seconds; within this time the audit service copies the collection. */
const GUEST_MS = 50;
/** The pause before the control starts: the audit copy ends its work, so that it takes no CPU time from the control. */
const SETTLE_MS = 500;

export async function measureCallbacks(world: BenchWorld, plan: CallbackPlan): Promise<CallbackMeasurement> {
  const parties = await startParties(world);
  const caller = await benchOwner(world);
  const watch = await watchDisplays(world);
  const counters = await makeCounters(world, caller, Math.max(plan.stationsAtOnce, plan.burstStations));
  const qr: QrPlan = { world, caller, counters, watch };
  const stationsAtOnce = counters.stations.slice(0, plan.stationsAtOnce);
  await collectInBlocks(qr, parties, stationsAtOnce, WARM_COLLECTIONS);
  const serial = await collectInBlocks(qr, parties, stationsAtOnce.slice(0, 1), plan.serialCollections);
  const atOnce = await collectInBlocks(qr, parties, stationsAtOnce, plan.collectionsEach);
  await requirePaidAtGateway(parties, qr, stationsAtOnce);
  const stations = counters.stations.slice(0, plan.burstStations);
  const burst = await measureBursts(qr, parties, { stations, rounds: plan.burstRounds });
  for (const process of [parties.control, parties.gateway, parties.stations, parties.services]) await process.stop();
  await watch.stop();
  return { serial, atOnce: { ...atOnce, stations: stationsAtOnce.length }, burst };
}

interface Times {
  readonly paidUs: number[];
  readonly answerUs: number[];
  readonly controlUs: number[];
}

/**
 * Collects `count` times: every station shows a QR, then the provider confirms all of them at the same moment. After each
 * block the control gets the same callbacks in the same groups.
 */
async function collectInBlocks(
  qr: QrPlan,
  parties: Parties,
  stations: readonly Counter[],
  count: number,
): Promise<Paid> {
  const times: Times = { paidUs: [], answerUs: [], controlUs: [] };
  const counters = stations.map((station) => ({
    station,
    product: new HttpConnection(parties.gatewayPort),
    control: new HttpConnection(parties.controlPort),
  }));
  for (let done = 0; done < count; done += BLOCK) {
    const waves: { readonly callback: PaidCallback; readonly counter: (typeof counters)[number] }[][] = [];
    while (waves.length < Math.min(BLOCK, count - done)) {
      const present = async (counter: (typeof counters)[number]) => ({
        counter,
        callback: await presentQr(qr, counter.station),
      });
      const wave = await Promise.all(counters.map(present));
      await delay(GUEST_MS);
      await Promise.all(wave.map(({ callback, counter }) => pay(qr, callback, counter.product, times)));
      waves.push(wave);
    }
    await delay(SETTLE_MS);
    for (const wave of waves) {
      const answers = await Promise.all(
        wave.map(({ callback, counter }) => counter.control.send(forControl(callback, qr.counters.configId))),
      );
      for (const { status, sentAtMs, answeredAtMs } of answers) {
        requireAllAnswered200({ [status]: 1 }, 1);
        times.controlUs.push((answeredAtMs - sentAtMs) * 1_000);
      }
    }
  }
  for (const { product, control } of counters) {
    product.close();
    control.close();
  }
  return { untilPaid: latency(times.paidUs), untilAnswer: latency(times.answerUs), control: latency(times.controlUs) };
}

async function pay(
  qr: QrPlan,
  { stationId, orderDisplayNumber, request }: PaidCallback,
  connection: HttpConnection,
  times: Times,
): Promise<void> {
  const paid = qr.watch.next(stationId, "paid", orderDisplayNumber);
  const { status, sentAtMs, answeredAtMs } = await connection.send(request);
  requireAllAnswered200({ [status]: 1 }, 1);
  times.answerUs.push((answeredAtMs - sentAtMs) * 1_000);
  times.paidUs.push(((await paid).atMs - sentAtMs) * 1_000);
}

/** Checks the probe against the gateway: after one more collection each, every display must get `paid` over HTTP. */
async function requirePaidAtGateway(parties: Parties, qr: QrPlan, stations: readonly Counter[]): Promise<void> {
  await collectInBlocks(qr, parties, stations, 1);
  for (const { stationId, credential } of stations) {
    const response = await fetch(`http://127.0.0.1:${parties.gatewayPort}${DISPLAY_PATH}`, {
      headers: { authorization: `Bearer ${credential}` },
    });
    const text = await response.text();
    if (!text.includes('"state":"paid"'))
      throw new Error(`The gateway answers the display of station ${stationId} with ${text}.`);
  }
}

/** The goal for the p99, measured without the network (docs/speed.md). */
const PAID_GOAL_US = 50_000;
const SETTLED_CPU_GOAL_US = 2_400;

export function callbackResults({ serial, atOnce, burst }: CallbackMeasurement): BenchResult[] {
  const shareOfControl = (perSecond: number): string => `${((perSecond / burst.control.perSecond) * 100).toFixed(0)} %`;
  const control = wholeNumber(burst.control.perSecond);
  const noGoal = { goal: "", met: undefined };
  return [
    paidResult("callback → paid on the display, one at a time", serial),
    paidResult(`callback → paid on the display, ${atOnce.stations} stations at once`, atOnce),
    answerResult("callback → its answer, one at a time", serial),
    {
      name: "callbacks per second, each recorded, answered and settled",
      measured: wholeNumber(burst.answered.perSecond),
      control,
      ratio: shareOfControl(burst.answered.perSecond),
      ...noGoal,
    },
    {
      name: "displays per second that these callbacks change to paid",
      measured: wholeNumber(burst.paidPerSecond),
      control,
      ratio: shareOfControl(burst.paidPerSecond),
      ...noGoal,
    },
    {
      name: "callback → paid on the display, in a burst, p50 / p99 / max (µs)",
      measured: p50P99Max(burst.untilPaid),
      control: "",
      ratio: "",
      ...noGoal,
    },
    {
      name: "duplicate callbacks per second",
      measured: wholeNumber(burst.duplicates.perSecond),
      control,
      ratio: shareOfControl(burst.duplicates.perSecond),
      ...noGoal,
    },
    settledCpuResult(burst.answered.cpuUs, burst.control.cpuUs),
    cpuResult("CPU per duplicate callback (µs)", burst.duplicates.cpuUs, burst.control.cpuUs),
  ];
}

function paidResult(name: string, { untilPaid, control }: Paid): BenchResult {
  return {
    name: `${name}, p50 / p99 / max (µs; ${untilPaid.samples})`,
    measured: p50P99Max(untilPaid),
    control: `answered: ${p50P99Max(control)}`,
    ratio: `${(untilPaid.p50Us / control.p50Us).toFixed(2)} ×`,
    goal: "p99 ≤ 50,000",
    met: untilPaid.p99Us <= PAID_GOAL_US,
  };
}

function answerResult(name: string, { untilAnswer, control }: Paid): BenchResult {
  return {
    name: `${name}, p50 / p99 / max (µs)`,
    measured: p50P99Max(untilAnswer),
    control: p50P99Max(control),
    ratio: `${(untilAnswer.p50Us / control.p50Us).toFixed(2)} ×`,
    goal: "",
    met: undefined,
  };
}

function settledCpuResult(measured: CpuTimes, control: CpuTimes): BenchResult {
  const met = total(measured) <= SETTLED_CPU_GOAL_US;
  return { ...cpuResult("CPU per settled callback (µs)", measured, control), goal: "≤ 2,400", met };
}

const total = (times: CpuTimes): number => CPU_USERS.reduce((sum, user) => sum + times[user], 0) - times.load;

function cpuResult(name: string, measured: CpuTimes, control: CpuTimes): BenchResult {
  const listed = (times: CpuTimes): string =>
    CPU_USERS.filter((user) => user !== "load" && times[user] >= 1)
      .map((user) => `${user} ${wholeNumber(times[user])}`)
      .join(", ");
  const ratio = `${(total(measured) / total(control)).toFixed(2)} ×`;
  const measuredText = `${wholeNumber(total(measured))}: ${listed(measured)}`;
  return { name, measured: measuredText, control: listed(control), ratio, goal: "", met: undefined };
}

const p50P99Max = ({ p50Us, p99Us, maxUs }: Latency): string => [p50Us, p99Us, maxUs].map(wholeNumber).join(" / ");
