/**
 * Compares two samples of times by their ranks only, so that the pauses of a busy machine count no more than any other value.
 */
import { expect } from "vitest";
import { median } from "./percentile.ts";

/**
 * The probability that a value of the first sample exceeds a value of the second (the Mann–Whitney statistic, AUC): 0.5
 * when the samples do not differ, 1 when every value of the first is larger. Ties count half.
 */
function probabilityOfLonger(first: readonly number[], second: readonly number[]): number {
  const all = [
    ...first.map((value) => ({ value, isFirst: true })),
    ...second.map((value) => ({ value, isFirst: false })),
  ];
  all.sort((a, b) => a.value - b.value);
  let rankSum = 0;
  for (let start = 0; start < all.length; ) {
    let end = start;
    while (end < all.length && all[end]?.value === all[start]?.value) end += 1;
    const rank = (start + 1 + end) / 2;
    for (let index = start; index < end; index += 1) if (all[index]?.isFirst === true) rankSum += rank;
    start = end;
  }
  return (rankSum - (first.length * (first.length + 1)) / 2) / (first.length * second.length);
}

/**
 * How many values of each kind a test compares at most. Fewer values do not show small differences. `npm run soak` compares
 * more.
 */
export const TIMING_TRIES = Number(process.env["TIMING_TRIES"] ?? 1_000);

const WARM_UP_TRIES = 100;
/** Five standard errors of the statistic for two samples of that size from the same distribution. */
const ALLOWED_DEVIATION = (5 * Math.sqrt((2 * TIMING_TRIES + 1) / 12)) / TIMING_TRIES;

/**
 * After `tries` the test ends when no kind deviates by more than `deviation`, which is less than what is allowed at the end.
 * Otherwise it continues to its last try. Of kinds without a difference, nine in ten runs end here. A kind whose step changes
 * the statistic by 0.1 ends here in one run of three hundred, as rarely as it passes with all tries: both limits are 2.75
 * standard errors below 0.1.
 */
const EARLY = { tries: 400, deviation: 0.044 };
const MAY_END_EARLY = process.env["TIMING_TRIES"] === undefined;

/** Tries each kind many times. Fails when the times of a kind differ from those of "unknown". Prints each kind's statistic. */
export async function expectSameTimes<TKind extends string>(
  what: string,
  kinds: readonly (TKind | "unknown")[],
  attempt: (kind: TKind | "unknown", nth: number) => Promise<unknown>,
): Promise<void> {
  const timesMs = new Map(kinds.map((kind) => [kind, [] as number[]]));
  const timesOf = (kind: TKind | "unknown"): number[] => timesMs.get(kind) ?? [];
  for (let index = -WARM_UP_TRIES; index < TIMING_TRIES; index += 1) {
    if (index === EARLY.tries && MAY_END_EARLY && deviation(timesMs) <= EARLY.deviation) break;
    // Each round starts with another kind, so that each place in a round is used by each kind.
    for (let turn = 0; turn < kinds.length; turn += 1) {
      const kind = kinds[(turn + Math.abs(index)) % kinds.length] ?? "unknown";
      const startedAtMs = performance.now();
      await attempt(kind, Math.abs(index));
      if (index >= 0) timesOf(kind).push(performance.now() - startedAtMs);
    }
  }
  const findings = kinds.map((kind) => ({
    kind,
    tries: timesOf(kind).length,
    medianMs: Number(median(timesOf(kind)).toFixed(3)),
    auc: Number(probabilityOfLonger(timesOf(kind), timesOf("unknown")).toFixed(3)),
  }));
  process.stderr.write(`${what}: ${JSON.stringify(findings)}\n`);
  for (const { kind, auc } of findings) {
    expect(Math.abs(auc - 0.5), `${kind}: ${JSON.stringify(findings)}`).toBeLessThanOrEqual(ALLOWED_DEVIATION);
  }
}

/** The largest deviation of a kind from "unknown". */
function deviation(timesMs: ReadonlyMap<string, readonly number[]>): number {
  const unknown = timesMs.get("unknown") ?? [];
  return Math.max(...[...timesMs.values()].map((times) => Math.abs(probabilityOfLonger(times, unknown) - 0.5)));
}
