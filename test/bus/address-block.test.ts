/** The canonical form of a client's address, and the address block by which throttles count it. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addressBlock, canonicalAddress } from "../../services/bus/address-block.ts";

describe("the canonical address", () => {
  it.each([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::FFFF:c000:201", "192.0.2.1"],
    ["0:0:0:0:0:ffff:c000:0201", "192.0.2.1"],
    ["2001:DB8::1", "2001:db8:0:0:0:0:0:1"],
    ["2001:0db8:0000::0001", "2001:db8:0:0:0:0:0:1"],
    ["fe80::1%eth0", "fe80:0:0:0:0:0:0:1"],
    ["::", "0:0:0:0:0:0:0:0"],
  ])("%s: the canonical address is %s", (written, canonical) => {
    expect(canonicalAddress(written)).toBe(canonical);
  });

  it.each([
    "",
    " ",
    "unknown",
    "0177.1",
    "1.2.3",
    "0x7f000001",
    "2001:db8::g",
    "192.0.2.1:80",
    "[::1]",
    "192.0.2.0/24",
  ])("%j: not an address", (text) => {
    expect(canonicalAddress(text)).toBeUndefined();
  });
});

describe("the address block that throttles count by", () => {
  it.each([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["2001:db8:0:0:ffff:ffff:ffff:ffff", "2001:db8:0:0::/64"],
    ["2001:db8:0:1::", "2001:db8:0:1::/64"],
    ["not an address", "not an address"],
    ["", ""],
  ])("%s: it counts as %s", (address, block) => {
    expect(addressBlock(address)).toBe(block);
  });

  it("any address: a /64 network has one block, and an IPv4 address is its block", () => {
    const group = fc.nat(0xffff).map((value) => value.toString(16));
    const half = fc.tuple(group, group, group, group).map((groups) => groups.join(":"));
    // The network ::/64 has the mapped IPv4 addresses, which do not count as one network.
    const network = half.filter((groups) => groups !== "0:0:0:0");
    fc.assert(
      fc.property(network, network, half, half, fc.ipV4(), (one, other, first, second, ipv4) => {
        expect(addressBlock(`${one}:${first}`)).toBe(addressBlock(`${one}:${second}`));
        expect(addressBlock(`${one}:${first}`) === addressBlock(`${other}:${first}`)).toBe(one === other);
        expect(addressBlock(ipv4)).toBe(ipv4);
        expect(addressBlock(`::ffff:${ipv4}`)).toBe(ipv4);
      }),
    );
  });
});
