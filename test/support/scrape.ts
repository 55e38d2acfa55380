/** Reads a process's metrics at its metrics port. */
import { METRIC_PREFIX } from "../../services/runtime/metrics.ts";

export interface Series {
  /** Without the prefix of this product. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Reads `/metrics` of a port on the loopback interface. */
export async function scrape(port: number): Promise<readonly Series[]> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`The metrics port answers ${response.status}: ${text}`);
  return parseSeries(text);
}

/** Parses the Prometheus text format. */
export function parseSeries(text: string): readonly Series[] {
  return text.split("\n").flatMap((line) => {
    const match = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (match === null || line.startsWith("#")) return [];
    const [, name = "", labels = "", value = ""] = match;
    return [{ name: name.replace(METRIC_PREFIX, ""), labels: parseLabels(labels), value: numberOf(value) }];
  });
}

/** The sum of all series with this name that carry these labels; undefined when there is none. */
export function metricSum(
  series: readonly Series[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const found = series.filter(
    (each) => each.name === name && Object.entries(labels).every(([label, value]) => each.labels[label] === value),
  );
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
}

function parseLabels(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = "", value = ""]) => [name, value]));
}

function numberOf(text: string): number {
  if (text === "+Inf") return Number.POSITIVE_INFINITY;
  return Number(text);
}
