/**
 * Finds the client's address. `X-Forwarded-For` counts only from a trusted proxy, and only the entries that trusted proxies
 * wrote: each appends the address that connected to it, on the same line or on a new line. So this module joins all lines in
 * order and reads the entries from the right, past the trusted proxies. A client may have invented the rest.
 */

import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { BlockList, isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { canonicalAddress } from "../../services/bus/address-block.ts";

export interface ClientAddress {
  /**
   * The address in its canonical form (services/bus/address-block.ts), whether the client's own connection is encrypted, and
   * the address at the other end of this connection, which may be a proxy's.
   */
  of(
    res: HttpResponse,
    req: HttpRequest,
  ): { readonly address: string; readonly secure: boolean; readonly peer: string };
  /** Whether this address is one of the trusted proxies. */
  isTrustedProxy(address: string): boolean;
}

interface ClientAddressSettings {
  /** Addresses and CIDR ranges of proxies, such as `10.0.0.0/8`. Empty: the server trusts no proxy. */
  readonly trustedProxies: readonly string[];
  /** Whether this server uses TLS. */
  readonly isTls: boolean;
  /**
   * Called once, with an address of a private network that forwards requests and is not trusted. It is probably a proxy that
   * is missing in the setting, so that all of its clients count as one.
   */
  readonly onUnnamedProxy?: (peer: string) => void;
}

export function createClientAddress(settings: ClientAddressSettings): ClientAddress {
  const trusted = new BlockList();
  for (const entry of settings.trustedProxies) addTo(trusted, entry);
  const isTrusted = (address: string): boolean => {
    const family = isIP(address);
    return family !== 0 && trusted.check(address, family === 6 ? "ipv6" : "ipv4");
  };
  let isReported = settings.onUnnamedProxy === undefined;
  return {
    isTrustedProxy: (address) => settings.trustedProxies.length > 0 && isTrusted(address),
    of(res, req) {
      const peer = addressText(new Uint8Array(res.getRemoteAddress()));
      if (settings.trustedProxies.length > 0 && isTrusted(peer)) {
        const { forwardedFor, forwardedProto } = forwardedHeaders(req);
        const secure = settings.isTls || forwardedProto.at(-1)?.toLowerCase() === "https";
        return { address: clientBehind(peer, forwardedFor, isTrusted), secure, peer };
      }
      if (!isReported && req.getHeader("x-forwarded-for") !== "" && isPrivate(peer)) {
        isReported = true;
        settings.onUnnamedProxy?.(peer);
      }
      return { address: peer, secure: settings.isTls, peer };
    },
  };
}

/** The entries of all lines in order. `getHeader` returns only the first line, which the client may have sent. */
function forwardedHeaders(req: HttpRequest): { readonly forwardedFor: string[]; readonly forwardedProto: string[] } {
  const forwardedFor: string[] = [];
  const forwardedProto: string[] = [];
  req.forEach((name, value) => {
    if (name === "x-forwarded-for") forwardedFor.push(...entriesOf(value));
    else if (name === "x-forwarded-proto") forwardedProto.push(...entriesOf(value));
  });
  return { forwardedFor, forwardedProto };
}

const entriesOf = (line: string): string[] => line.split(",").map((entry) => entry.trim());

/** The nearest address that is not a trusted proxy's. At an entry that is not an address, the proxy that wrote it counts. */
function clientBehind(peer: string, chain: readonly string[], isTrusted: (address: string) => boolean): string {
  let nearest = peer;
  for (const entry of chain.toReversed()) {
    const address = canonicalAddress(withoutPort(entry));
    if (address === undefined) return nearest;
    nearest = address;
    if (!isTrusted(address)) return address;
  }
  return nearest;
}

/** Some balancers append the client's port: `192.0.2.1:51234`, `[2001:db8::1]:51234`. */
function withoutPort(entry: string): string {
  return /^\[([^\]]+)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1] ?? entry;
}

/** The canonical form of four or sixteen bytes. A connection that was just reset has no bytes and gets the empty text. */
export function addressText(bytes: Uint8Array): string {
  if (bytes.length !== 16) return bytes.join(".");
  const text = ipaddr.fromByteArray([...bytes]).toString();
  return canonicalAddress(text) ?? text;
}

const PRIVATE_RANGES: ReadonlySet<string> = new Set(["loopback", "private", "linkLocal", "uniqueLocal"]);

function isPrivate(address: string): boolean {
  return isIP(address) !== 0 && PRIVATE_RANGES.has(ipaddr.parse(address).range());
}

function addTo(list: BlockList, entry: string): void {
  const [address = "", prefix] = entry.split("/");
  const family = isIP(address) === 6 ? "ipv6" : "ipv4";
  if (prefix === undefined) list.addAddress(address, family);
  else list.addSubnet(address, Number(prefix), family);
}
