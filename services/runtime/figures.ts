/**
 * Figures of a process for its metrics (`metrics.ts`). Each is added once, when its owner starts; without a registry
 * nobody collects, and adding or counting does nothing.
 *
 * A label's values come from lists that are closed: operations, codes, kinds. Ids, addresses and secrets are never
 * labels; each new value would be a series of its own for as long as the process lives.
 */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export interface FigureFacts<TLabel extends string> {
  /** By Prometheus' conventions: base units, `_total` for what only grows, `_seconds` for durations. */
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly TLabel[];
}

type Labels<TLabel extends string> = Readonly<Record<TLabel, string>>;

/** Something that is counted when it happens. */
export interface Count<TLabel extends string> {
  add(labels: Labels<TLabel>, count?: number): void;
}

/** Something that takes time. */
export interface Duration<TLabel extends string> {
  observe(labels: Labels<TLabel>, seconds: number): void;
}

/** A value that is read when somebody asks; one that cannot be read then is told as NaN, and the others all the same. */
export function addGauge(
  registry: Registry | undefined,
  name: string,
  help: string,
  read: () => number | Promise<number>,
): void {
  if (registry === undefined) return;
  void new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      this.set(await valueOf(read));
    },
  });
}

async function valueOf(read: () => number | Promise<number>): Promise<number> {
  try {
    return await read();
  } catch {
    return Number.NaN;
  }
}

/** Values of one kind by label, read when somebody asks. */
export function addGauges<TLabel extends string>(
  registry: Registry | undefined,
  facts: FigureFacts<TLabel>,
  read: () => Iterable<readonly [Labels<TLabel>, number]>,
): void {
  if (registry === undefined) return;
  const { name, help, labels = [] } = facts;
  void new Gauge({
    name,
    help,
    labelNames: labels,
    registers: [registry],
    collect() {
      this.reset();
      for (const [values, value] of read()) this.set(values, value);
    },
  });
}

/** Counts that their owner keeps as plain numbers, because it counts too often for more; read when somebody asks. */
export function addReadCount<TLabel extends string>(
  registry: Registry | undefined,
  facts: FigureFacts<TLabel>,
  read: () => Iterable<readonly [Labels<TLabel>, number]>,
): void {
  if (registry === undefined) return;
  const { name, help, labels = [] } = facts;
  void new Counter({
    name,
    help,
    labelNames: labels,
    registers: [registry],
    collect() {
      this.reset();
      for (const [values, count] of read()) this.inc(values, count);
    },
  });
}

export function addCount<TLabel extends string>(
  registry: Registry | undefined,
  { name, help, labels = [] }: FigureFacts<TLabel>,
): Count<TLabel> {
  if (registry === undefined) return { add: () => undefined };
  const counter = new Counter({ name, help, labelNames: labels, registers: [registry] });
  return { add: (values, count = 1) => counter.inc(values, count) };
}

/** From a commit that needs no disk flush to a request that was given up (gateway/limits.ts). */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function addDuration<TLabel extends string>(
  registry: Registry | undefined,
  { name, help, labels = [] }: FigureFacts<TLabel>,
): Duration<TLabel> {
  if (registry === undefined) return { observe: () => undefined };
  const histogram = new Histogram({ name, help, labelNames: labels, registers: [registry], buckets: SECONDS });
  return { observe: (values, seconds) => histogram.observe(values, seconds) };
}
