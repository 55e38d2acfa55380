/** The number of partitions of stations. It never changes, because every subject and credential contains a partition. */
export const PARTITION_COUNT = 256;

/**
 * The partition of a station. Ids come from a sequence, so the function hashes them first (Knuth's multiplicative hash). So the
 * consecutive ids of one organization are in many partitions.
 */
export function partitionOf(stationId: number): number {
  return Math.imul(stationId, 0x9e3779b1) >>> 24;
}

/** The partition as two lower-case hex digits, for subjects and credentials. */
export function partitionToken(partition: number): string {
  return partition.toString(16).padStart(2, "0");
}
