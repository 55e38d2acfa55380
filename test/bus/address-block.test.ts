/** How clients' addresses are written and counted. */
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
  ])("%s is %s", (written, canonical) => {
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
  ])("%j is none", (text) => {
    expect(canonicalAddress(text)).toBeUndefined();
  });
});

describe("the block that throttles count by", () => {
  it.each([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["2001:db8:0:0:ffff:ffff:ffff:ffff", "2001:db8:0:0::/64"],
    ["2001:db8:0:1::", "2001:db8:0:1::/64"],
    ["not an address", "not an address"],
    ["", ""],
  ])("%s counts as %s", (address, block) => {
    expect(addressBlock(address)).toBe(block);
  });

  it("is one for all addresses of a /64, and another for each other /64 and each IPv4 address", () => {
    const group = fc.nat(0xffff).map((value) => value.toString(16));
    const half = fc.tuple(group, group, group, group).map((groups) => groups.join(":"));
    // Mapped IPv4 addresses are below ::/64 and are no IPv6 network.
    const network = half.filter((groups) => groups !== "0:0:0:0");
    fc.assert(
      fc.property(network, network, half, half, fc.ipV4(), (own, other, first, second, ipv4) => {
        expect(addressBlock(`${own}:${first}`)).toBe(addressBlock(`${own}:${second}`));
        expect(addressBlock(`${own}:${first}`) === addressBlock(`${other}:${first}`)).toBe(own === other);
        expect(addressBlock(ipv4)).toBe(ipv4);
        expect(addressBlock(`::ffff:${ipv4}`)).toBe(ipv4);
      }),
    );
  });
});
