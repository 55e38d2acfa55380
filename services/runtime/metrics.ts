/**
 * The metrics of a process; `metrics-port.ts` publishes them. A component adds each of its metrics once, when it
 * starts. Without a registry, adding and counting do nothing.
 *
 * A label's values come from closed lists: operations, codes, kinds. Ids, addresses and secrets are never labels: each
 * new value would add a series for as long as the process lives.
 */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** The prefix of every metric's name, so that one search finds all metrics of this product. */
export const METRIC_PREFIX = "device_payments_";

interface MetricFacts<TLabel extends string> {
  /** Without the prefix, by Prometheus' conventions: base units, `_total` for counters, `_seconds` for durations. */
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly TLabel[];
}

/** A counter or a duration. Each label has the list of all its values. */
interface CountFacts<TLabel extends string> extends Omit<MetricFacts<TLabel>, "labels"> {
  readonly labels?: Readonly<Record<TLabel, readonly string[]>>;
  /** The series that can occur, where not all combinations of the labels' values can. */
  readonly series?: Iterable<Labels<TLabel>>;
}

type Labels<TLabel extends string> = Readonly<Record<TLabel, string>>;
type LabelledValues<TLabel extends string> = Iterable<readonly [Labels<TLabel>, number]>;

/** A counter of events. */
export interface Count<TLabel extends string> {
  add(labels: Labels<TLabel>, count?: number): void;
}

/** A histogram of durations. */
export interface Duration<TLabel extends string> {
  observe(labels: Labels<TLabel>, seconds: number): void;
}

/**
 * Adds a value that is read at each scrape. When the read fails, the value is NaN, and the other metrics are published.
 */
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

/** Adds values with labels, read at each scrape. */
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

/** Adds counters that a component keeps as plain numbers, because it counts very often; read at each scrape. */
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

/** Adds a counter. Each series starts at 0, so that a rate shows the first count, too. */
export function addCount<TLabel extends string>(
  registry: Registry | undefined,
  facts: CountFacts<TLabel>,
): Count<TLabel> {
  if (registry === undefined) return { add: () => undefined };
  const counter = new Counter({ ...namesOf(facts), registers: [registry] });
  for (const labels of facts.series ?? combinations(facts.labels)) counter.inc(labels, 0);
  return { add: (values, count = 1) => counter.inc(values, count) };
}

/** The buckets, from a commit without a disk flush to an abandoned request (`gateway/limits.ts`). */
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
