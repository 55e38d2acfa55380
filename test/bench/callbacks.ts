/**
 * Callback → `paid`: from the moment a callback's bytes are sent to the gateway until a display would be answered `paid`,
 * and callbacks per second through gateway and providers service. The control is a bare handler that verifies the same
 * signature and inserts one row into the same PostgreSQL.
 */
import { setTimeout as delay } from "node:timers/promises";
import { benchOwner } from "./bench-owner.ts";
import type { Ground } from "./bench-world.ts";
import { type BurstFigures, measureBursts } from "./callback-bursts.ts";
import {
  CPU_OWNERS,
  type CpuTimes,
  type Latency,
  latency,
  type Parties,
  requireOk,
  startParties,
} from "./callback-parties.ts";
import { watchDisplays } from "./display-watch.ts";
import { type Figure, wholeNumber } from "./figure.ts";
import { HttpConnection } from "./load/http-connection.ts";
import { DISPLAY_PATH } from "./polls.ts";
import { type Counter, forControl, makeCounters, type PaidCallback, presentQr, type QrPlan } from "./qr-counters.ts";

export interface CallbackPlan {
  /** One after the other at one station. */
  readonly serialCollections: number;
  /** Stations that are paid in the same moment, so many times. */
  readonly stationsAtOnce: number;
  readonly collectionsEach: number;
  /** Payments that are registered when a burst of callbacks begins: one per station. */
  readonly burstStations: number;
  readonly burstRounds: number;
}

export interface Paid {
  readonly untilPaid: Latency;
  /** Until the provider has its 200. */
  readonly untilAnswer: Latency;
  readonly control: Latency;
}

export interface CallbackFigures {
  readonly serial: Paid;
  readonly atOnce: Paid & { readonly stations: number };
  readonly burst: BurstFigures;
}

const WARM_COLLECTIONS = 30;
/** Collections after which the control takes its turn. */
const BLOCK = 50;
/** Between the code on the display and the callback: a guest takes seconds; by now the audit has copied the collection. */
const GUEST_MS = 50;
/** Lets the audit copy and what else is behind catch up, so that the control does not pay for it. */
const SETTLE_MS = 500;

export async function measureCallbacks(ground: Ground, plan: CallbackPlan): Promise<CallbackFigures> {
  const parties = await startParties(ground);
  const caller = await benchOwner(ground);
  const watch = await watchDisplays(ground);
  const counters = await makeCounters(ground, caller, Math.max(plan.stationsAtOnce, plan.burstStations));
  const qr: QrPlan = { ground, caller, counters, watch };
  const many = counters.stations.slice(0, plan.stationsAtOnce);
  await collectInBlocks(qr, parties, many, WARM_COLLECTIONS);
  const serial = await collectInBlocks(qr, parties, many.slice(0, 1), plan.serialCollections);
  const atOnce = await collectInBlocks(qr, parties, many, plan.collectionsEach);
  await requirePaidAtGateway(parties, qr, many);
  const stations = counters.stations.slice(0, plan.burstStations);
  const burst = await measureBursts(qr, parties, { stations, rounds: plan.burstRounds });
  for (const process of [parties.control, parties.gateway, parties.stations, parties.services]) await process.stop();
  await watch.stop();
  return { serial, atOnce: { ...atOnce, stations: many.length }, burst };
}

interface Times {
  readonly paidUs: number[];
  readonly answerUs: number[];
  readonly controlUs: number[];
}

/**
 * Every station shows a code, then all are paid in the same moment, `count` times; after each block the control gets the
 * same callbacks in the same manner.
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
        requireOk({ [status]: 1 }, 1);
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
  requireOk({ [status]: 1 }, 1);
  times.answerUs.push((answeredAtMs - sentAtMs) * 1_000);
  times.paidUs.push(((await paid).atMs - sentAtMs) * 1_000);
}

/** What the probe sees is what the gateway answers: one more collection each, and the display is asked over HTTP. */
async function requirePaidAtGateway(parties: Parties, qr: QrPlan, stations: readonly Counter[]): Promise<void> {
  await collectInBlocks(qr, parties, stations, 1);
  for (const { stationId, credential } of stations) {
    const response = await fetch(`http://127.0.0.1:${parties.gatewayPort}${DISPLAY_PATH}`, {
      headers: { authorization: `Bearer ${credential}` },
    });
    const text = await response.text();
    if (!text.includes('"state":"paid"')) throw new Error(`The display of station ${stationId} is told ${text}.`);
  }
}

/** Server side, at p99 (design §8). */
const PAID_GOAL_US = 50_000;

export function callbackFigures({ serial, atOnce, burst }: CallbackFigures): Figure[] {
  const share = (one: number): string => `${((one / burst.control.perSecond) * 100).toFixed(0)} %`;
  const control = wholeNumber(burst.control.perSecond);
  const plain = { goal: "", met: undefined };
  return [
    paidFigure("callback → paid on the display, one at a time", serial),
    paidFigure(`callback → paid on the display, ${atOnce.stations} stations at once`, atOnce),
    answerFigure("callback → its answer, one at a time", serial),
    {
      name: "callbacks per second: recorded, answered and settled",
      measured: wholeNumber(burst.answered.perSecond),
      control,
      ratio: share(burst.answered.perSecond),
      ...plain,
    },
    {
      name: "of these, displays that show paid, per second",
      measured: wholeNumber(burst.paidPerSecond),
      control,
      ratio: share(burst.paidPerSecond),
      ...plain,
    },
    {
      name: "callback → paid in that burst, p50 / p99 / max (µs)",
      measured: threeOf(burst.untilPaid),
      control: "",
      ratio: "",
      ...plain,
    },
    {
      name: "duplicate callbacks per second",
      measured: wholeNumber(burst.duplicates.perSecond),
      control,
      ratio: share(burst.duplicates.perSecond),
      ...plain,
    },
    cpuFigure("CPU per settled callback (µs)", burst.answered.cpuUs, burst.control.cpuUs),
    cpuFigure("CPU per duplicate callback (µs)", burst.duplicates.cpuUs, burst.control.cpuUs),
  ];
}

function paidFigure(name: string, { untilPaid, control }: Paid): Figure {
  return {
    name: `${name}, p50 / p99 / max (µs; ${untilPaid.samples})`,
    measured: threeOf(untilPaid),
    control: `answered: ${threeOf(control)}`,
    ratio: `${(untilPaid.p50Us / control.p50Us).toFixed(2)} ×`,
    goal: "p99 ≤ 50,000",
    met: untilPaid.p99Us <= PAID_GOAL_US,
  };
}

function answerFigure(name: string, { untilAnswer, control }: Paid): Figure {
  return {
    name: `${name}, p50 / p99 / max (µs)`,
    measured: threeOf(untilAnswer),
    control: threeOf(control),
    ratio: `${(untilAnswer.p50Us / control.p50Us).toFixed(2)} ×`,
    goal: "",
    met: undefined,
  };
}

function cpuFigure(name: string, measured: CpuTimes, control: CpuTimes): Figure {
  const total = (times: CpuTimes): number => CPU_OWNERS.reduce((sum, owner) => sum + times[owner], 0) - times.load;
  const said = (times: CpuTimes): string =>
    CPU_OWNERS.filter((owner) => owner !== "load" && times[owner] >= 1)
      .map((owner) => `${owner} ${wholeNumber(times[owner])}`)
      .join(", ");
  const ratio = `${(total(measured) / total(control)).toFixed(2)} ×`;
  return { name, measured: said(measured), control: said(control), ratio, goal: "", met: undefined };
}

const threeOf = ({ p50Us, p99Us, maxUs }: Latency): string => [p50Us, p99Us, maxUs].map(wholeNumber).join(" / ");
