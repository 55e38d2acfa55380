/**
 * Checks the URL of a target before any request to the network. It checks the raw text, because a parser repairs
 * deceptive spellings (`https:\\127.1`, `https://@host`), and the parsed URL, because the sender connects to that. No
 * refusal reason describes the service's network.
 */
import { isIP } from "node:net";
import { BOUNDS } from "../../bus/bounds.ts";
import { isLoopbackAddress, isPublicAddress } from "./address-rule.ts";

export const TARGET_REFUSALS = [
  "too_long",
  "not_a_url",
  "not_https",
  "credentials_in_url",
  "fragment",
  "host_not_public",
  "port_not_allowed",
  "not_canonical",
  "not_visible_ascii",
  "too_many_addresses",
] as const;
export type TargetRefusal = (typeof TARGET_REFUSALS)[number];

const DEVELOPMENT =
  "For development WEBHOOK_ALLOW_LOOPBACK lets consumers of mode test have addresses of this machine.";

/** The sentences that an owner reads. */
export const TARGET_REFUSAL_SENTENCES: Readonly<Record<TargetRefusal, string>> = {
  too_long: "The address is too long.",
  not_a_url: "This is no web address.",
  not_https: `A webhook goes to an https address only. ${DEVELOPMENT}`,
  credentials_in_url: "The address must not hold a user name or password.",
  fragment: "The address must not hold a fragment.",
  host_not_public: `The host is not a public one, or not all of its addresses are. ${DEVELOPMENT}`,
  port_not_allowed: "A webhook goes to port 443 or 8443 only.",
  not_canonical:
    "The address is not written as it is read; begin it with https:// and write the host in ASCII letters or plain digits.",
  not_visible_ascii:
    "Write the whole address in visible ASCII, without spaces and backslashes; encode other characters as %XX.",
  too_many_addresses: "The host has too many addresses.",
};

/**
 * Whether this machine may be a target: `allowed` for `test` consumers where WEBHOOK_ALLOW_LOOPBACK is on, by http or
 * https and on any port; else `refused`.
 */
export type LoopbackRule = "refused" | "allowed";

type UrlCheck = { readonly ok: true; readonly url: URL } | { readonly ok: false; readonly reason: TargetRefusal };

/** `URL.port` is empty for the scheme's default port. */
const PORTS: ReadonlySet<string> = new Set(["", "8443"]);

/** Names that only a local network resolves. */
const LOCAL_NAMES = [
  "localhost",
  "localdomain",
  "local",
  "internal",
  "home.arpa",
  "lan",
  "home",
  "corp",
  "intranet",
  "private",
];

/** A name as DNS takes it: labels of letters, digits, hyphens and underscores. */
const DNS_NAME = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/;

/** Visible ASCII. A parser repairs white space and control characters, and other letters may look like ASCII ones. */
const PLAIN = /^[!-~]+$/;

const refused = (reason: TargetRefusal): UrlCheck => ({ ok: false, reason });

/** Checks what can be checked without the network: whether the sender may connect to this URL. */
export function checkTargetUrl(raw: string, { loopback }: { readonly loopback: LoopbackRule }): UrlCheck {
  if (raw.length > BOUNDS.webhookUrlCharacters) return refused("too_long");
  const url = URL.parse(raw);
  if (url === null) return refused("not_a_url");
  const isLoopback = loopback === "allowed" && isLoopbackHost(url.hostname);
  if (url.protocol !== "https:" && !(isLoopback && url.protocol === "http:")) return refused("not_https");
  if (url.username !== "" || url.password !== "" || authorityOf(raw).includes("@"))
    return refused("credentials_in_url");
  if (raw.includes("#")) return refused("fragment");
  if (!isLoopback && !isPublicHost(url.hostname)) return refused("host_not_public");
  if (!isLoopback && !PORTS.has(url.port)) return refused("port_not_allowed");
  // Spaces around the address are no defect of its host.
  if (!isCanonical(raw.trim(), url)) return refused("not_canonical");
  if (!PLAIN.test(raw) || raw.includes("\\")) return refused("not_visible_ascii");
  // The parsed URL is stored and sent, and its escapes make it longer.
  if (url.href.length > BOUNDS.webhookUrlCharacters) return refused("too_long");
  return { ok: true, url };
}

/** The host of a URL: a name, or an address without brackets. */
export function hostOf(url: URL): string {
  return withoutBrackets(url.hostname);
}

function withoutBrackets(hostname: string): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}

/** Whether the host is `localhost` (RFC 6761) or a loopback address. A name that resolves to one is not loopback here. */
export function isLoopbackHost(hostname: string): boolean {
  const host = withoutBrackets(hostname);
  return isIP(host) === 0 ? host === "localhost" || host.endsWith(".localhost") : isLoopbackAddress(host);
}

function isPublicHost(hostname: string): boolean {
  const host = withoutBrackets(hostname);
  if (isIP(host) !== 0) return isPublicAddress(host);
  const name = host.replace(/\.$/, "");
  if (!DNS_NAME.test(name) || !name.includes(".")) return false;
  return !LOCAL_NAMES.some((local) => name === local || name.endsWith(`.${local}`));
}

/** The raw text between scheme and path. A slash or a backslash ends it, as in browsers. */
function authorityOf(raw: string): string {
  return /^[^:/\\?#]*:?[/\\]*([^/\\?#]*)/.exec(raw)?.[1] ?? "";
}

/**
 * Whether scheme, host and port have their canonical spelling, in which every parser finds the same host. The scheme's
 * default port may be written out.
 */
function isCanonical(raw: string, url: URL): boolean {
  if (url.hostname.endsWith(".")) return false;
  const written = /^([a-z]+:\/\/[^/?]*)/i.exec(raw)?.[1]?.toLowerCase();
  const defaultPort = url.protocol === "https:" ? ":443" : ":80";
  return written === url.origin || (url.port === "" && written === `${url.origin}${defaultPort}`);
}
