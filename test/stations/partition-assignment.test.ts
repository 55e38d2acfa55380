import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { PARTITION_COUNT } from "../../machines/partition.ts";
import { assignPartitions } from "../../services/stations/ownership.ts";

const hostsOf = (count: number): string[] => Array.from({ length: count }, () => randomUUID());

describe("the assignment of partitions", () => {
  it("gives all partitions to a single host, and assigns none without a host", () => {
    expect(new Set(assignPartitions(["only"]))).toEqual(new Set(["only"]));
    expect(assignPartitions([])).toEqual([]);
  });

  it("does not depend on the order of the hosts", () => {
    const hosts = hostsOf(5);
    expect(assignPartitions(hosts.toReversed())).toEqual(assignPartitions(hosts));
  });

  it.each([2, 3, 4, 8])("shares evenly among %i hosts", (count) => {
    for (let round = 0; round < 20; round += 1) {
      const hosts = hostsOf(count);
      const owners = assignPartitions(hosts);
      for (const host of hosts) {
        const share = owners.filter((owner) => owner === host).length / (PARTITION_COUNT / count);
        expect(share).toBeGreaterThan(0.4);
        expect(share).toBeLessThan(1.8);
      }
    }
  });

  it("moves only the partitions that a new host gets or an ended host had", () => {
    const hosts = hostsOf(4);
    const newcomer = randomUUID();
    const before = assignPartitions(hosts);
    const after = assignPartitions([...hosts, newcomer]);
    for (const [partition, owner] of after.entries()) {
      if (owner !== newcomer) expect(owner).toBe(before[partition]);
    }
  });
});
