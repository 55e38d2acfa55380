/**
 * Resolves all addresses of a target's host and checks each. The signer queries name servers directly: the system's resolver
 * would also read the machine's hosts file and try names of its local network.
 */
import { Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import { TARGET_LIMITS } from "../limits.ts";
import { isLoopbackHost, type TargetRefusal } from "./check-url.ts";

export interface ResolverSettings {
  /** Name servers as `address` or `address:port`, IPv6 in brackets; empty for the system's. */
  readonly servers: readonly string[];
  /** How long both look-ups together may take. */
  readonly dnsMs: number;
  /** Whether the host may be connected to at this address. */
  readonly allows: (host: string, address: string) => boolean;
}

type Resolution =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly error: "target_refused"; readonly reason: TargetRefusal }
  | { readonly ok: false; readonly error: "dns_failed" };

/** The name server's answers for a name without an address of that kind. After any other failure the name may have one. */
const NO_ADDRESS: ReadonlySet<unknown> = new Set(["ENODATA", "ENOTFOUND"]);

/**
 * All addresses of the host, in the order of the attempts. One address that is not allowed refuses the host, even when the
 * other look-up failed. If one look-up fails, the result is `dns_failed`, because the missing answer may hold a refused address.
 * Rejects with the signal's reason when it aborts.
 */
export async function resolveTarget(
  host: string,
  settings: ResolverSettings,
  signal: AbortSignal,
): Promise<Resolution> {
  signal.throwIfAborted();
  const { allows } = settings;
  if (isIP(host) !== 0) return checked(host, [host], allows);
  // These names always mean this machine (RFC 6761), so no name server is asked.
  if (isLoopbackHost(host)) return checked(host, ["127.0.0.1", "::1"], allows);
  const { ipv4, ipv6 } = await lookUp(host, settings, signal);
  const found = alternated(ipv4 ?? [], ipv6 ?? []);
  if (found.length > TARGET_LIMITS.addresses) {
    return { ok: false, error: "target_refused", reason: "too_many_addresses" };
  }
  const resolution = checked(host, found, allows);
  if (resolution.ok && (ipv4 === undefined || ipv6 === undefined || found.length === 0)) {
    return { ok: false, error: "dns_failed" };
  }
  return resolution;
}

function checked(host: string, addresses: readonly string[], allows: ResolverSettings["allows"]): Resolution {
  if (addresses.every((address) => allows(host, address))) return { ok: true, addresses };
  return { ok: false, error: "target_refused", reason: "host_not_public" };
}

interface Found {
  /** Undefined where the look-up failed. */
  readonly ipv4: readonly string[] | undefined;
  readonly ipv6: readonly string[] | undefined;
}

/** Each call has its own resolver, and so its own source port, no cache, and a cancellation that stops no other call. */
async function lookUp(host: string, { servers, dnsMs }: ResolverSettings, signal: AbortSignal): Promise<Found> {
  const resolver = new Resolver({ timeout: TARGET_LIMITS.dnsQuestionMs });
  if (servers.length > 0) resolver.setServers(servers);
  const cancel = (): void => resolver.cancel();
  const timer = setTimeout(cancel, dnsMs);
  signal.addEventListener("abort", cancel, { once: true });
  try {
    const [ipv4, ipv6] = await Promise.all([
      resolver.resolve4(host).catch(withoutAddress),
      resolver.resolve6(host).catch(withoutAddress),
    ]);
    signal.throwIfAborted();
    return { ipv4, ipv6 };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", cancel);
  }
}

function withoutAddress(cause: unknown): readonly string[] | undefined {
  return cause instanceof Error && "code" in cause && NO_ADDRESS.has(cause.code) ? [] : undefined;
}

/** IPv4 and IPv6 addresses in turn, so that a few attempts try both. */
function alternated(ipv4: readonly string[], ipv6: readonly string[]): readonly string[] {
  const longest = Math.max(ipv4.length, ipv6.length);
  return Array.from({ length: longest }, (_, at) => [ipv4[at], ipv6[at]])
    .flat()
    .filter((address) => address !== undefined);
}
