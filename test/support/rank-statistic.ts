/**
 * Comparing two samples of times by ranks only, so that the pauses of a busy machine weigh no more than any other value.
 */

/**
 * The probability that a value of the first sample exceeds one of the second (the Mann–Whitney statistic, AUC): 0.5 when
 * a single value shows no difference, 1 when it always does; ties count half.
 */
export function probabilityOfLonger(first: readonly number[], second: readonly number[]): number {
  const all = [...first.map((value) => ({ value, own: true })), ...second.map((value) => ({ value, own: false }))];
  all.sort((a, b) => a.value - b.value);
  let rankSum = 0;
  for (let start = 0; start < all.length; ) {
    let end = start;
    while (end < all.length && all[end]?.value === all[start]?.value) end += 1;
    const rank = (start + 1 + end) / 2;
    for (let index = start; index < end; index += 1) if (all[index]?.own === true) rankSum += rank;
    start = end;
  }
  return (rankSum - (first.length * (first.length + 1)) / 2) / (first.length * second.length);
}

/** How many values of each kind a test compares: with fewer, small differences are not found. `npm run soak` compares more. */
export const TIMING_TRIES = Number(process.env["TIMING_TRIES"] ?? 1_000);

/** Five standard errors of the statistic for two samples of that size that do not differ. */
export function allowedDeviation(size: number): number {
  return (5 * Math.sqrt((2 * size + 1) / 12)) / size;
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
