/**
 * Which addresses are public. For IPv6 the rule lists allowed blocks, because unassigned blocks may get any use. For
 * IPv4 it lists refused blocks, because all others are assigned. Each address is checked with the tables of `ipaddr.js`
 * as well: the library knows some blocks that these lists lack, and lacks some that these lists have.
 */
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";

export type Block = ReturnType<typeof ipaddr.parseCIDR>;

/** IPv4 that no webhook goes to. */
const REFUSED_IPV4 = blocks([
  "0.0.0.0/8", // this network (RFC 791)
  "10.0.0.0/8", // private (RFC 1918)
  "100.64.0.0/10", // carrier-grade NAT (RFC 6598); one cloud has its metadata in it
  "127.0.0.0/8", // loopback (RFC 1122)
  "168.63.129.16/32", // a cloud's host agent, at an address that seems public
  "169.254.0.0/16", // link-local (RFC 3927), with the metadata of most clouds
  "172.16.0.0/12", // private (RFC 1918)
  "192.0.0.0/24", // protocol assignments (RFC 6890); one cloud has its metadata in it
  "192.0.2.0/24", // documentation (RFC 5737)
  "192.31.196.0/24", // AS112 (RFC 7535)
  "192.52.193.0/24", // AMT (RFC 7450)
  "192.88.99.0/24", // 6to4 relays (RFC 7526)
  "192.168.0.0/16", // private (RFC 1918)
  "192.175.48.0/24", // AS112 (RFC 7534)
  "198.18.0.0/15", // benchmarking (RFC 2544)
  "198.51.100.0/24", // documentation (RFC 5737)
  "203.0.113.0/24", // documentation (RFC 5737)
  "224.0.0.0/4", // multicast (RFC 5771)
  "240.0.0.0/4", // reserved (RFC 1112), with the broadcast address
]);

/** The only part of IPv6 that is assigned to the public (RFC 4291). */
const GLOBAL_IPV6 = block("2000::/3");

/** The blocks in it that are not public, or that may lead to a refused IPv4 address. */
const REFUSED_IPV6 = blocks([
  "2001::/23", // protocol assignments (RFC 2928): Teredo, benchmarking, ORCHID, AMT, drones
  "2001:db8::/32", // documentation (RFC 3849)
  "2002::/16", // 6to4 (RFC 3056)
  "2620:4f:8000::/48", // AS112 (RFC 7534)
  "3fff::/20", // documentation (RFC 9637)
]);

const LOOPBACK_IPV4 = block("127.0.0.0/8");

/** Whether this is a public internet address; false for a text that is not an address. */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text);
  if (address === undefined || address.range() !== "unicast") return false;
  if (address.kind() === "ipv4") return !REFUSED_IPV4.some((refused) => address.match(refused));
  return (
    address.match(GLOBAL_IPV6) &&
    !REFUSED_IPV6.some((refused) => address.match(refused)) &&
    !isIsatap(address.toByteArray())
  );
}

/** Whether this is the machine itself, by one of the loopback addresses. */
export function isLoopbackAddress(text: string): boolean {
  const address = parseAddress(text);
  if (address === undefined) return false;
  return address.kind() === "ipv4" ? address.match(LOOPBACK_IPV4) : address.range() === "loopback";
}

/** One spelling for each address, so that two texts can be compared; undefined for a text that is not an address. */
function canonicalAddress(text: string): string | undefined {
  return parseAddress(text)?.toNormalizedString();
}

/** Whether the address lies in one of the blocks. */
export function isWithin(blocksToMatch: readonly Block[], text: string): boolean {
  const address = parseAddress(text);
  return (
    address !== undefined && blocksToMatch.some((each) => each[0].kind() === address.kind() && address.match(each))
  );
}

/** Blocks from texts like `192.0.2.0/24` or `2001:db8::1`. Throws where one is neither an address nor a block. */
export function blocks(texts: readonly string[]): readonly Block[] {
  return texts.map(block);
}

function block(text: string): Block {
  const [address = "", bits] = text.split("/");
  const family = isIP(address);
  if (family === 0) throw new Error(`${text} is no block of addresses.`);
  return ipaddr.parseCIDR(`${address}/${bits ?? (family === 4 ? 32 : 128)}`);
}

/**
 * `isIP` comes first, because the library also accepts texts like `0177.1`. A zone has meaning in this machine's
 * network only.
 */
function parseAddress(text: string): ReturnType<typeof ipaddr.parse> | undefined {
  return isIP(text) === 0 || text.includes("%") ? undefined : ipaddr.parse(text);
}

/** ISATAP (RFC 5214) may follow any prefix: the interface id is 0000:5efe or 0200:5efe and an IPv4 address. */
function isIsatap(bytes: readonly number[]): boolean {
  return (bytes[8] === 0 || bytes[8] === 2) && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe;
}

/** Makes a check whether a network interface of this machine has an address, or had it within the last `goodForMs`. */
export function createOwnAddresses(goodForMs: number): (address: string) => boolean {
  let own: ReadonlySet<string | undefined> = new Set();
  let readAt = Number.NEGATIVE_INFINITY;
  return (address) => {
    const now = performance.now();
    if (now - readAt > goodForMs) {
      own = new Set(
        Object.values(networkInterfaces()).flatMap((each) => each?.map((one) => canonicalAddress(one.address))),
      );
      readAt = now;
    }
    return own.has(canonicalAddress(address));
  };
}
