/** Partitions: they never change, are in range, and divide the ids of a database sequence evenly. */
import { describe, expect, it } from "vitest";
import { PARTITION_COUNT, partitionOf, partitionToken } from "../../machines/partition.ts";

describe("partitionOf", () => {
  it("an id: always the same partition, because subjects and credentials contain it", () => {
    expect(
      [1, 2, 3, 12_345, 1_000_000, 123_456_789, 4_000_000_000].map((id) => partitionToken(partitionOf(id))),
    ).toEqual(STABLE);
  });

  it("the ids up to 10,000: one of 256 partitions, written as two lower-case hex digits", () => {
    for (let id = 1; id <= 10_000; id += 1) {
      const partition = partitionOf(id);
      expect(Number.isInteger(partition) && partition >= 0 && partition < PARTITION_COUNT).toBe(true);
      expect(partitionToken(partition)).toMatch(/^[0-9a-f]{2}$/);
    }
  });

  it("a block of consecutive ids: it is divided evenly, for any first id", () => {
    for (const first of [1, 5_000, 1_000_000]) {
      const counts = Array.from({ length: PARTITION_COUNT }, () => 0);
      const perPartition = 40;
      for (let id = first; id < first + PARTITION_COUNT * perPartition; id += 1) {
        counts[partitionOf(id)] = (counts[partitionOf(id)] ?? 0) + 1;
      }
      expect(Math.min(...counts)).toBeGreaterThan(perPartition * 0.8);
      expect(Math.max(...counts)).toBeLessThan(perPartition * 1.2);
    }
  });
});

const STABLE = ["9e", "3c", "da", "a1", "fc", "7f", "15"];
