/** Stations hash into this many partitions; the number is part of every subject and credential and never changes. */
export const PARTITION_COUNT = 256;

/**
 * The partition of a station. Ids come from a sequence, so they are mixed first (Knuth's multiplicative hash): a block
 * of ids registered by one organization then spreads over all partitions instead of landing on neighbours.
 */
export function partitionOf(stationId: number): number {
  return Math.imul(stationId, 0x9e3779b1) >>> 24;
}

/** The partition as the two lower-case hex digits that subjects and credentials carry. */
export function partitionToken(partition: number): string {
  return partition.toString(16).padStart(2, "0");
}
