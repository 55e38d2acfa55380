/** Which addresses are public: a table of addresses that must be refused, and properties of whole ranges. */
import { BlockList, isIPv4 } from "node:net";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isLoopbackAddress, isPublicAddress } from "../../../services/webhook-signer/target/address-rule.ts";
import { REFUSED_IPV4, REFUSED_IPV6 } from "./refused-targets.ts";

const ALLOWED = "8.8.8.8 100.63.255.255 100.128.0.1 172.15.255.255 172.32.0.1 192.0.1.1 2606:4700::1111".split(" ");

/** A second implementation: Node's block list, filled from the text of the ranges and not from the product's. */
const PRIVATE_RANGES = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.31.196.0", 24],
  ["192.52.193.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["192.175.48.0", 24],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const;
const privateBlocks = new BlockList();
for (const [address, bits] of PRIVATE_RANGES) privateBlocks.addSubnet(address, bits, "ipv4");

const numberOf = (address: string): number => address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
const dotted = (value: number): string => [24, 16, 8, 0].map((shift) => (value >>> shift) & 0xff).join(".");
const hex = (value: number): string => `${(value >>> 16).toString(16)}:${(value & 0xffff).toString(16)}`;

const anyIpv4 = fc.integer({ min: 0, max: 0xffff_ffff });
const privateIpv4 = fc
  .constantFrom(...PRIVATE_RANGES)
  .chain(([address, bits]) =>
    fc.integer({ min: 0, max: 2 ** (32 - bits) - 1 }).map((offset) => numberOf(address) + offset),
  );
const group = fc.integer({ min: 0, max: 0xffff });

describe("an address", () => {
  test.each([...REFUSED_IPV4, ...REFUSED_IPV6])("%s is refused", (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  test.each(ALLOWED)("%s is public", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  test.each(["", "localhost", "0177.0.0.1", "127.1", "8.8.8", "2606:4700::1111%eth0", "[::1]", "8.8.8.8/32"])(
    "«%s» is not an address, and so not public",
    (text) => {
      expect([isPublicAddress(text), isLoopbackAddress(text)]).toEqual([false, false]);
    },
  );

  test("is this machine only in 127.0.0.0/8 and at ::1", () => {
    const loopback = [...REFUSED_IPV4, ...REFUSED_IPV6, ...ALLOWED].filter(isLoopbackAddress);
    expect(loopback).toEqual(["127.0.0.1", "127.255.255.254", "::1"]);
  });
});

describe("an IPv4 address", () => {
  test("every address within the refused ranges is refused", () => {
    fc.assert(
      fc.property(privateIpv4, (value) => !isPublicAddress(dotted(value))),
      { numRuns: 5_000 },
    );
  });

  test("every address is judged as by Node's block list", () => {
    fc.assert(
      fc.property(anyIpv4, (value) => {
        const address = dotted(value);
        expect(isIPv4(address)).toBe(true);
        expect(isPublicAddress(address)).toBe(!privateBlocks.check(address, "ipv4"));
      }),
      { numRuns: 20_000 },
    );
  });

  test("both ends of every range are refused, and their neighbours are judged by the other ranges alone", () => {
    for (const [address, bits] of PRIVATE_RANGES) {
      const first = numberOf(address);
      const last = first + 2 ** (32 - bits) - 1;
      for (const value of [first - 1, first, last, last + 1].filter((each) => each >= 0 && each <= 0xffff_ffff)) {
        expect(isPublicAddress(dotted(value)), dotted(value)).toBe(!privateBlocks.check(dotted(value), "ipv4"));
      }
    }
  });
});

describe("an IPv6 address", () => {
  const FORMS: Record<string, (value: number) => string> = {
    mapped: (value) => `::ffff:${hex(value)}`,
    "mapped, dotted": (value) => `::ffff:${dotted(value)}`,
    "IPv4-compatible": (value) => `::${hex(value)}`,
    "IPv4-translated": (value) => `::ffff:0:${hex(value)}`,
    NAT64: (value) => `64:ff9b::${hex(value)}`,
    "local NAT64": (value) => `64:ff9b:1::${hex(value)}`,
    "6to4": (value) => `2002:${hex(value)}::1`,
    "Teredo, as server": (value) => `2001:0:${hex(value)}::1`,
    "Teredo, as client": (value) => `2001:0:808:808:0:0:${hex(~value >>> 0)}`,
  };

  test.each(Object.entries(FORMS))("no %s form of an IPv4 address is public", (_name, form) => {
    fc.assert(
      fc.property(fc.oneof(privateIpv4, anyIpv4), (value) => !isPublicAddress(form(value))),
      { numRuns: 2_000 },
    );
  });

  test("no ISATAP form of an IPv4 address is public, below any prefix", () => {
    fc.assert(
      fc.property(fc.tuple(group, group, group, group), fc.constantFrom("0", "200"), anyIpv4, (prefix, flag, value) => {
        const front = prefix.map((part) => part.toString(16)).join(":");
        return !isPublicAddress(`${front}:${flag}:5efe:${hex(value)}`);
      }),
      { numRuns: 3_000 },
    );
  });

  test("no address outside 2000::/3 is public", () => {
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
        fc.pre(((groups[0] ?? 0) & 0xe000) !== 0x2000);
        return !isPublicAddress(groups.map((part) => part.toString(16)).join(":"));
      }),
      { numRuns: 5_000 },
    );
  });
});
