/**
 * The addresses of clients: one way of writing each, and one unit in which every throttle counts them.
 *
 * A customer of an IPv6 network is assigned a /64 at least and uses any address in it, so the whole block counts as one
 * client. An IPv4 address counts alone. An IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) is that IPv4 address.
 */
import { isIP, isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";

const IPV6_GROUPS = 8;
/** A /64. */
const BLOCK_GROUPS = 4;

/** IPv4 with four decimal numbers, IPv6 with all eight groups in lower case and without a zone; undefined for anything else. */
export function canonicalAddress(text: string): string | undefined {
  const family = isIP(text);
  if (family === 4) return text;
  // The library alone also accepts `0177.1` and the like.
  return family === 6 ? ipaddr.process(text.replace(/%.*$/, "")).toNormalizedString() : undefined;
}

/** What a throttle counts by: an IPv4 address, or the /64 of an IPv6 address. A text that is no address stays as it is. */
export function addressBlock(address: string): string {
  if (isIPv4(address)) return address;
  const groups = canonicalAddress(address)?.split(":") ?? [];
  if (groups.length === IPV6_GROUPS) return `${groups.slice(0, BLOCK_GROUPS).join(":")}::/64`;
  return groups[0] ?? address;
}
