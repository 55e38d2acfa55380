/** Who should own which partition: each host alone comes to the same answer from the same set of live hosts. */
import { PARTITION_COUNT } from "../../machines/partition.ts";

/**
 * The owner of each partition by rendezvous hashing: when a host comes or goes, only the partitions that it gets or had
 * change hands. Empty when nobody is alive.
 */
export function assignPartitions(hostIds: readonly string[]): readonly string[] {
  const seeds = hostIds.toSorted().map((hostId) => ({ hostId, seed: hashText(hostId) }));
  if (seeds.length === 0) return [];
  return Array.from({ length: PARTITION_COUNT }, (_, partition) => {
    let owner = "";
    let highest = -1;
    for (const { hostId, seed } of seeds) {
      const weight = mix(seed ^ Math.imul(partition + 1, 0x9e3779b1));
      if (weight <= highest) continue;
      highest = weight;
      owner = hostId;
    }
    return owner;
  });
}

/** FNV-1a, 32 bits. */
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}

/** The finalizer of MurmurHash3: neighbouring partitions get unrelated weights. */
function mix(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
