/**
 * The time of the bus, which all processes of an installation share. The deadlines of requests and stations use it. So
 * a machine with a wrong clock drops no request, and nothing expires early or late.
 *
 *   ask the bus for its time ──► the best of a few answers: its time, and half of the round trip
 *        ▲                                     │
 *        └── every 10 s, after a reconnect, ◄──┘   between two measurements the steady clock of this machine counts on
 *            and when this machine's clock is set
 *
 * The bus's time is the clock of the server that leads the bucket LEASES: the server puts its time into the bucket's
 * stream info. Before the first measurement, while that bucket does not exist yet, this machine's clock counts.
 *
 * In a cluster one server's clock may be wrong. So the process also asks the servers that lead the other buckets. When the
 * leader of LEASES is more than a second from the median of the servers, the clock of the server next to the median counts.
 */
import type { NatsConnection } from "nats";
import type { Registry } from "prom-client";
import { every } from "../runtime/every.ts";
import type { LineLog } from "../runtime/log.ts";
import { addGauge } from "../runtime/metrics.ts";
import { BUS_LIMITS } from "./limits.ts";
import { BUCKETS, type BucketDefinition, LEASES } from "./streams.ts";

export interface BusClock {
  /** Whole milliseconds since the epoch, by the clock of the bus. */
  nowMs(): number;
  /**
   * The latest time that it can be now. It differs from `nowMs` when this machine slept or its clock was set, until the
   * next measurement: the steady clock stops while a machine sleeps.
   */
  latestMs(): number;
  /** By how much this machine's clock is ahead of the bus; undefined before the first measurement. */
  aheadMs(): number | undefined;
  /** Whether this machine's clock is ahead or behind by more than `wrongClockMs`. */
  isWrong(): boolean;
  /** The name of the server that leads LEASES while its clock does not count, because it is wrong. */
  wrongServer(): string | undefined;
  /** Resolves after a measurement. A failed measurement does not change the clock. Never rejects. */
  measure(): Promise<void>;
  /** Calls the listener after each measurement that succeeds. */
  onMeasured(listener: () => void): void;
}

type KnownClock = Pick<BusClock, "nowMs" | "latestMs" | "isWrong">;

/** The clock for a connection that has no measured clock. */
const MACHINE_CLOCK: KnownClock = { nowMs: () => Date.now(), latestMs: () => Date.now(), isWrong: () => false };

const clocks = new WeakMap<NatsConnection, BusClock>();

/** The clock of a connection of `connectBus`; any other connection has this machine's clock. */
export function clockOf(nc: NatsConnection): KnownClock {
  return clocks.get(nc) ?? MACHINE_CLOCK;
}

interface Sample {
  /** The bus's time when `performance.now()` was zero. */
  readonly atStartMs: number;
  /** This machine's time then. */
  readonly machineAtStartMs: number;
  readonly tookMs: number;
  /** The server whose time it is; empty for a single server. */
  readonly server: string;
}

interface StreamInfo {
  readonly ts?: string;
  readonly cluster?: { readonly leader?: string };
}

const machineAtStartMs = (): number => Date.now() - performance.now();

/** A clock that measures until the connection is closed. */
export function startBusClock(nc: NatsConnection): BusClock & { stop(): void } {
  const clock = new MeasuredClock(nc);
  clocks.set(nc, clock);
  return clock;
}

class MeasuredClock implements BusClock {
  readonly #nc: NatsConnection;
  readonly #listeners: (() => void)[] = [];
  readonly #stopChecks: () => void;
  #best: Sample | undefined;
  #measuring: Promise<void> | undefined;
  #wrongServer: string | undefined;
  #measuredAtMs = Number.NEGATIVE_INFINITY;

  constructor(nc: NatsConnection) {
    this.#nc = nc;
    this.#stopChecks = every(BUS_LIMITS.clockCheckMs, () => {
      const isDue = performance.now() - this.#measuredAtMs >= BUS_LIMITS.clockMeasureMs;
      if (isDue || this.#hasMoved()) void this.measure();
    });
  }

  nowMs(): number {
    return this.#best === undefined ? Date.now() : Math.round(this.#best.atStartMs + performance.now());
  }

  latestMs(): number {
    const best = this.#best;
    if (best === undefined) return Date.now();
    const movedMs = this.#hasMoved() ? machineAtStartMs() - best.machineAtStartMs : 0;
    return this.nowMs() + Math.max(0, Math.round(movedMs));
  }

  aheadMs(): number | undefined {
    return this.#best && Math.round(machineAtStartMs() - this.#best.atStartMs);
  }

  isWrong(): boolean {
    const uncertainMs = (this.#best?.tookMs ?? 0) / 2;
    return Math.abs(this.aheadMs() ?? 0) > BUS_LIMITS.wrongClockMs + uncertainMs;
  }

  wrongServer(): string | undefined {
    return this.#wrongServer;
  }

  async measure(): Promise<void> {
    this.#measuring ??= this.#measure().finally(() => {
      this.#measuring = undefined;
    });
    await this.#measuring;
  }

  onMeasured(listener: () => void): void {
    this.#listeners.push(listener);
  }

  stop(): void {
    this.#stopChecks();
  }

  /** Whether this machine slept, or its clock was set, since the last measurement. */
  #hasMoved(): boolean {
    if (this.#best === undefined) return false;
    return Math.abs(machineAtStartMs() - this.#best.machineAtStartMs) > BUS_LIMITS.clockMovedMs;
  }

  /** Measures with the fastest of a few answers: the error of an answer is up to half of the time that it took. */
  async #measure(): Promise<void> {
    let best: Sample | undefined;
    for (let count = 0; count < BUS_LIMITS.clockSamples; count += 1) {
      const next = await this.#ask(LEASES);
      if (next === undefined) break;
      if (best === undefined || next.tookMs < best.tookMs) best = next;
      if (best.tookMs <= BUS_LIMITS.clockSampleMs) break;
    }
    if (best === undefined) return;
    const trusted = best.server === "" ? best : trustedOf(best, await this.#askOthers());
    this.#wrongServer = trusted === best ? undefined : best.server;
    this.#best = trusted;
    this.#measuredAtMs = performance.now();
    for (const listener of this.#listeners) listener();
  }

  async #askOthers(): Promise<readonly Sample[]> {
    const samples = await Promise.all(BUCKETS.filter((bucket) => bucket !== LEASES).map((bucket) => this.#ask(bucket)));
    return samples.filter((sample) => sample !== undefined);
  }

  async #ask({ name }: BucketDefinition): Promise<Sample | undefined> {
    const askedAtMs = performance.now();
    try {
      const timeout = BUS_LIMITS.clockAnswerMs;
      const answer = await this.#nc.request(`$JS.API.STREAM.INFO.KV_${name}`, "", { timeout });
      const tookMs = performance.now() - askedAtMs;
      const { ts = "", cluster } = answer.json<StreamInfo>();
      const busMs = Date.parse(ts);
      if (Number.isNaN(busMs)) return undefined;
      const atStartMs = busMs - askedAtMs - tookMs / 2;
      return { atStartMs, machineAtStartMs: machineAtStartMs(), tookMs, server: cluster?.leader ?? "" };
    } catch {
      // The bus is down or has no such bucket yet; the next check asks again.
      return undefined;
    }
  }
}

/**
 * This sample of the leader of LEASES, or one of another server when this one is far from the median of all servers. With
 * two servers this machine's clock is the third one.
 */
function trustedOf(ofLeases: Sample, others: readonly Sample[]): Sample {
  const servers = [...new Map([...others, ofLeases].map((sample) => [sample.server, sample])).values()];
  const times = servers.map(({ atStartMs }) => atStartMs);
  if (times.length % 2 === 0) times.push(ofLeases.machineAtStartMs);
  const median = times.toSorted((one, other) => one - other)[(times.length - 1) / 2] ?? ofLeases.atStartMs;
  const errorMs = ({ atStartMs }: Sample): number => Math.abs(atStartMs - median);
  if (errorMs(ofLeases) <= BUS_LIMITS.wrongClockMs) return ofLeases;
  return servers.toSorted((one, other) => errorMs(one) - errorMs(other))[0] ?? ofLeases;
}

/**
 * Logs when this machine's clock or that of the server that leads LEASES becomes wrong and when it is right again, and adds
 * a metric for the difference of this machine's clock.
 */
export function reportClock(deps: {
  readonly clock: BusClock;
  readonly log: LineLog;
  readonly metrics?: Registry | undefined;
}): void {
  const { clock, log, metrics } = deps;
  let wasWrong = false;
  let wrongServer: string | undefined;
  const report = (): void => {
    const server = clock.wrongServer();
    if (server !== wrongServer) {
      if (server !== undefined)
        log.warn(
          { server },
          "the clock of this NATS server is wrong: the clock of another server counts; correct the clock",
        );
      else
        log.info({ server: wrongServer }, "the clock of this NATS server is right again, or it leads LEASES no more");
      wrongServer = server;
    }
    const isWrong = clock.isWrong();
    if (isWrong === wasWrong) return;
    wasWrong = isWrong;
    const facts = { aheadMs: clock.aheadMs(), limitMs: BUS_LIMITS.wrongClockMs };
    if (isWrong) log.warn(facts, "the clock of this machine is wrong: the time of the bus counts; correct the clock");
    else log.info(facts, "the clock of this machine is right again");
  };
  clock.onMeasured(report);
  report();
  addGauge(
    metrics,
    "clock_ahead_seconds",
    "By how much this machine's clock is ahead of the bus; negative when it is behind.",
    () => (clock.aheadMs() ?? Number.NaN) / 1_000,
  );
}
