/** The value below which a share of the samples lies (nearest rank); the input is sorted in place. */
export function percentile(samples: Float64Array | number[], share: number): number {
  if (samples.length === 0) return Number.NaN;
  samples.sort((a, b) => a - b);
  return samples[Math.min(samples.length - 1, Math.ceil(share * samples.length) - 1)] ?? Number.NaN;
}

/** The middle of a few values, because one noisy round on a shared machine must not decide. */
export function median(values: readonly number[]): number {
  return percentile([...values], 0.5);
}
