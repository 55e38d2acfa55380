/**
 * The metrics of a process (`metrics-port.ts` publishes them). Each is added once, when its owner starts; without a registry
 * nothing collects them, and adding or counting does nothing.
 *
 * A label's values come from lists that are closed: operations, codes, kinds. Ids, addresses and secrets are never
 * labels; each new value would be a series of its own for as long as the process lives.
 */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** Begins the name of every metric, so that one search finds all of this product. */
export const METRIC_PREFIX = "device_payments_";

export interface MetricFacts<TLabel extends string> {
  /** Without the prefix. By Prometheus' conventions: base units, `_total` for what only grows, `_seconds` for durations. */
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly TLabel[];
}

/** Something that is counted; each of its labels with all its values. */
export interface CountFacts<TLabel extends string> extends Omit<MetricFacts<TLabel>, "labels"> {
  readonly labels?: Readonly<Record<TLabel, readonly string[]>>;
  /** The series that can occur, where these are not all combinations of the labels' values. */
  readonly series?: Iterable<Labels<TLabel>>;
}

type Labels<TLabel extends string> = Readonly<Record<TLabel, string>>;
type LabelledValues<TLabel extends string> = Iterable<readonly [Labels<TLabel>, number]>;

/** Something that is counted when it happens. */
export interface Count<TLabel extends string> {
  add(labels: Labels<TLabel>, count?: number): void;
}

/** Something that takes time. */
export interface Duration<TLabel extends string> {
  observe(labels: Labels<TLabel>, seconds: number): void;
}

/** A value that is read at each scrape; one that cannot be read is published as NaN beside the others. */
export function addGauge(
  registry: Registry | undefined,
  name: string,
  help: string,
  read: () => number | Promise<number>,
): void {
  if (registry === undefined) return;
  void new Gauge({
    name: METRIC_PREFIX + name,
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

/** Values of one kind by label, read at each scrape. */
export function addGauges<TLabel extends string>(
  registry: Registry | undefined,
  facts: MetricFacts<TLabel>,
  read: () => LabelledValues<TLabel> | Promise<LabelledValues<TLabel>>,
): void {
  if (registry === undefined) return;
  const { name, help, labels = [] } = facts;
  void new Gauge({
    name: METRIC_PREFIX + name,
    help,
    labelNames: labels,
    registers: [registry],
    async collect() {
      const known = await read();
      this.reset();
      for (const [values, value] of known) this.set(values, value);
    },
  });
}

/** Counts that their owner keeps as plain numbers, because it counts too often for more; read at each scrape. */
export function addReadCount<TLabel extends string>(
  registry: Registry | undefined,
  facts: MetricFacts<TLabel>,
  read: () => Iterable<readonly [Labels<TLabel>, number]>,
): void {
  if (registry === undefined) return;
  const { name, help, labels = [] } = facts;
  void new Counter({
    name: METRIC_PREFIX + name,
    help,
    labelNames: labels,
    registers: [registry],
    collect() {
      this.reset();
      for (const [values, count] of read()) this.inc(values, count);
    },
  });
}

/** Each series starts at 0, so that a rate shows its first count as well. */
export function addCount<TLabel extends string>(
  registry: Registry | undefined,
  facts: CountFacts<TLabel>,
): Count<TLabel> {
  if (registry === undefined) return { add: () => undefined };
  const counter = new Counter({ ...namesOf(facts), registers: [registry] });
  for (const labels of facts.series ?? combinations(facts.labels)) counter.inc(labels, 0);
  return { add: (values, count = 1) => counter.inc(values, count) };
}

/** From a commit that needs no disk flush to a request that was given up (gateway/limits.ts). */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function addDuration<TLabel extends string>(
  registry: Registry | undefined,
  facts: CountFacts<TLabel>,
): Duration<TLabel> {
  if (registry === undefined) return { observe: () => undefined };
  const histogram = new Histogram({ ...namesOf(facts), registers: [registry], buckets: SECONDS });
  for (const labels of facts.series ?? combinations(facts.labels)) histogram.zero(labels);
  return { observe: (values, seconds) => histogram.observe(values, seconds) };
}

function namesOf<TLabel extends string>({ name, help, labels }: CountFacts<TLabel>) {
  return { name: METRIC_PREFIX + name, help, labelNames: Object.keys(labels ?? {}) as TLabel[] };
}

function combinations<TLabel extends string>(labels: CountFacts<TLabel>["labels"]): Labels<TLabel>[] {
  let made: Record<string, string>[] = [{}];
  for (const [label, values] of Object.entries<readonly string[]>(labels ?? {})) {
    made = made.flatMap((each) => values.map((value) => ({ ...each, [label]: value })));
  }
  return made as Labels<TLabel>[];
}
