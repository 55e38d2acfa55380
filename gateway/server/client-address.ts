/** Whose request it is. A forwarded address counts only when a configured proxy says so; anybody can write the header. */

import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { BlockList, isIP } from "node:net";

export interface ClientAddress {
  /** The address as text (IPv6 with all eight groups) and whether the client's own connection is encrypted. */
  of(res: HttpResponse, req: HttpRequest): { readonly address: string; readonly secure: boolean };
}

export interface ClientAddressSettings {
  /** Addresses and CIDR ranges of proxies, such as `10.0.0.0/8`; empty trusts nobody. */
  readonly trustedProxies: readonly string[];
  /** Whether this server itself speaks TLS. */
  readonly isTls: boolean;
}

export function createClientAddress(settings: ClientAddressSettings): ClientAddress {
  const trusted = new BlockList();
  for (const entry of settings.trustedProxies) addTo(trusted, entry);
  const isTrusted = (address: string): boolean => trusted.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
  return {
    of(res, req) {
      const peer = addressText(new Uint8Array(res.getRemoteAddress()));
      if (settings.trustedProxies.length === 0 || !isTrusted(peer)) return { address: peer, secure: settings.isTls };
      const secure = settings.isTls || req.getHeader("x-forwarded-proto").toLowerCase() === "https";
      return { address: forwardedAddress(req.getHeader("x-forwarded-for"), isTrusted) ?? peer, secure };
    },
  };
}

/** The last address that no trusted proxy has: what stands before it was written by somebody unknown. */
function forwardedAddress(header: string, isTrusted: (address: string) => boolean): string | undefined {
  for (const entry of header.split(",").toReversed()) {
    const address = entry.trim();
    if (isIP(address) === 0) return undefined;
    if (!isTrusted(address)) return isIP(address) === 6 ? expandIpv6(address) : address;
  }
  return undefined;
}

/** Four or sixteen bytes as text; an IPv4 address that came through an IPv6 socket is shown as IPv4. */
export function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  const isMapped =
    bytes.length === 16 && bytes[10] === 0xff && bytes[11] === 0xff && bytes.every((b, i) => i > 9 || b === 0);
  if (isMapped) return bytes.subarray(12).join(".");
  const groups: string[] = [];
  for (let at = 0; at + 1 < bytes.length; at += 2) {
    groups.push((((bytes[at] as number) << 8) | (bytes[at + 1] as number)).toString(16));
  }
  return groups.join(":");
}

/** `2001:db8::1` as eight groups, so that a /64 can be cut off. */
function expandIpv6(address: string): string {
  const [head = "", tail] = (address.split("%")[0] as string).split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length);
  return [...left, ...Array.from({ length: zeros }, () => "0"), ...right].join(":").toLowerCase();
}

function addTo(list: BlockList, entry: string): void {
  const [address = "", prefix] = entry.split("/");
  const family = isIP(address) === 6 ? "ipv6" : "ipv4";
  if (prefix === undefined) list.addAddress(address, family);
  else list.addSubnet(address, Number(prefix), family);
}
