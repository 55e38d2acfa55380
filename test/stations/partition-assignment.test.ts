import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { PARTITION_COUNT } from "../../machines/partition.ts";
import { assignPartitions } from "../../services/stations/ownership.ts";

const hostsOf = (count: number): string[] => Array.from({ length: count }, () => randomUUID());

describe("the assignment of partitions", () => {
  it("one host has all partitions; without a host, none is assigned", () => {
    expect(new Set(assignPartitions(["only"]))).toEqual(new Set(["only"]));
    expect(assignPartitions([])).toEqual([]);
  });

  it("the hosts in another order: the assignment is the same", () => {
    const hosts = hostsOf(5);
    expect(assignPartitions(hosts.toReversed())).toEqual(assignPartitions(hosts));
  });

  it.each([2, 3, 4, 8])("%i hosts: each has 0.4 to 1.8 times an equal share", (count) => {
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

  it("a host starts: only the partitions that it gets move", () => {
    const hosts = hostsOf(4);
    const newcomer = randomUUID();
    const before = assignPartitions(hosts);
    const after = assignPartitions([...hosts, newcomer]);
    for (const [partition, owner] of after.entries()) {
      if (owner !== newcomer) expect(owner).toBe(before[partition]);
    }
  });
});
