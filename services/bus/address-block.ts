/**
 * The addresses of clients: the canonical text of an address, and the block that every throttle counts as one client.
 *
 * An IPv6 network assigns each customer at least a /64, and the customer may use any address in it. So a whole /64 counts
 * as one client. An IPv4 address counts alone. An IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) is that IPv4 address.
 */
import { isIP, isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";

const IPV6_GROUPS = 8;
/** A /64. */
const BLOCK_GROUPS = 4;

/** IPv4 as four decimal numbers; IPv6 as all eight groups in lower case, without a zone; undefined for other text. */
export function canonicalAddress(text: string): string | undefined {
  const family = isIP(text);
  if (family === 4) return text;
  // The library alone also accepts `0177.1` and the like.
  return family === 6 ? ipaddr.process(text.replace(/%.*$/, "")).toNormalizedString() : undefined;
}

/** The key by which a throttle counts: an IPv4 address, or the /64 of an IPv6 address. Other text stays unchanged. */
export function addressBlock(address: string): string {
  if (isIPv4(address)) return address;
  const groups = canonicalAddress(address)?.split(":") ?? [];
  if (groups.length === IPV6_GROUPS) return `${groups.slice(0, BLOCK_GROUPS).join(":")}::/64`;
  // The canonical form of an IPv4-mapped address is an IPv4 address, which has no colon.
  return groups[0] ?? address;
}
