/**
 * Callbacks as fast as the gateway accepts them: each for a registered, unpaid payment, then the same ones again as
 * duplicates; the control inserts a row for each of the same bytes.
 */
import { setTimeout as delay } from "node:timers/promises";
import { median } from "../support/percentile.ts";
import {
  type CpuTimes,
  cpuSince,
  cpuTimes,
  type Latency,
  latency,
  type Parties,
  requireAllAnswered200,
} from "./callback-parties.ts";
import { runLoad } from "./load/http-load.ts";
import { type Counter, forControl, type PaidCallback, presentQr, type QrPlan } from "./qr-counters.ts";

export interface Burst {
  readonly perSecond: number;
  readonly cpuUs: CpuTimes;
}

export interface BurstMeasurement {
  /** The time until the last callback is answered. Its CPU time is counted until the last display shows `paid`. */
  readonly answered: Burst;
  readonly paidPerSecond: number;
  readonly untilPaid: Latency;
  /** Callbacks that repeat callbacks which were answered before. */
  readonly duplicates: Burst;
  readonly control: Burst;
}

interface Round {
  readonly answered: Burst;
  readonly paidPerSecond: number;
  readonly duplicates: Burst;
  readonly control: Burst;
}

const CONNECTIONS = 32;
/** Duplicates and control repeat the same callbacks this often, so that their part lasts long enough to be measured. */
const REPETITIONS = 4;
/** Waits for the audit copy and other delayed work, so that no part includes the cost of the part before it. */
const SETTLE_MS = 500;

/** The first round is not counted: its stations have never collected, and it warms up the code that only a burst uses. */
export async function measureBursts(
  qr: QrPlan,
  parties: Parties,
  plan: { readonly stations: readonly Counter[]; readonly rounds: number },
): Promise<BurstMeasurement> {
  await measureRound(qr, parties, plan.stations, []);
  const paidUs: number[] = [];
  const rounds: Round[] = [];
  for (let n = 0; n < plan.rounds; n += 1) rounds.push(await measureRound(qr, parties, plan.stations, paidUs));
  return {
    answered: medianBurst(rounds.map((round) => round.answered)),
    paidPerSecond: median(rounds.map((round) => round.paidPerSecond)),
    untilPaid: latency(paidUs),
    duplicates: medianBurst(rounds.map((round) => round.duplicates)),
    control: medianBurst(rounds.map((round) => round.control)),
  };
}

async function measureRound(
  qr: QrPlan,
  parties: Parties,
  stations: readonly Counter[],
  paidUs: number[],
): Promise<Round> {
  const callbacks: PaidCallback[] = [];
  for (let at = 0; at < stations.length; at += CONNECTIONS)
    callbacks.push(...(await Promise.all(stations.slice(at, at + CONNECTIONS).map((one) => presentQr(qr, one)))));
  await delay(SETTLE_MS);
  const forControls = callbacks.map((one) => forControl(one, qr.counters.configId));
  const control = await load(qr, parties, { port: parties.controlPort, requests: repeated(forControls) });
  await delay(SETTLE_MS);

  const paid = Promise.all(callbacks.map((one) => qr.watch.next(one.stationId, "paid", one.orderDisplayNumber)));
  const requests = callbacks.map((one) => one.request);
  const first: string[] = [];
  const answered = await load(qr, parties, { port: parties.gatewayPort, requests, bodies: first, until: paid });
  const shownAtMs = (await paid).map((one) => one.atMs);
  for (const [index, atMs] of shownAtMs.entries()) paidUs.push((atMs - (answered.sentAtMs[index] ?? 0)) * 1_000);
  const paidMs = Math.max(...shownAtMs) - Math.min(...answered.sentAtMs);
  await delay(SETTLE_MS);

  const again: string[] = [];
  const duplicates = await load(qr, parties, {
    port: parties.gatewayPort,
    requests: repeated(requests),
    bodies: again,
  });
  for (const [index, body] of again.entries())
    if (body !== first[index % first.length]) throw new Error(`A duplicate was answered ${body}.`);
  return { answered, paidPerSecond: (callbacks.length / paidMs) * 1_000, duplicates, control };
}

interface Load {
  readonly port: number;
  readonly requests: readonly Buffer[];
  /** The load adds the bodies of the answers to it. */
  readonly bodies?: string[];
  /** Work that belongs to the measurement and may end after the answers. */
  readonly until?: Promise<unknown>;
}

async function load(
  { world }: QrPlan,
  parties: Parties,
  { port, requests, bodies, until }: Load,
): Promise<Burst & { readonly sentAtMs: Float64Array }> {
  const before = cpuTimes(world, parties);
  const onBody = (index: number, body: string): void => {
    if (bodies !== undefined) bodies[index] = body;
  };
  const result = await runLoad({ port, connections: CONNECTIONS, requests, isFromManyAddresses: true, onBody });
  requireAllAnswered200(result.statuses, requests.length);
  await until;
  const cpuUs = cpuSince(before, cpuTimes(world, parties), requests.length);
  return { perSecond: (requests.length / result.elapsedMs) * 1_000, cpuUs, sentAtMs: result.sentAtMs };
}

const repeated = (requests: readonly Buffer[]): Buffer[] => Array.from({ length: REPETITIONS }, () => requests).flat();

function medianBurst(rounds: readonly Burst[]): Burst {
  const owners = Object.keys(rounds[0]?.cpuUs ?? {}) as (keyof CpuTimes)[];
  const cpuUs = owners.map((owner) => [owner, median(rounds.map((round) => round.cpuUs[owner]))]);
  return { perSecond: median(rounds.map((round) => round.perSecond)), cpuUs: Object.fromEntries(cpuUs) as CpuTimes };
}
