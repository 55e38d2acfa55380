/** Why a target is refused: the closed list, with what its owner reads. Nothing in it tells what our network looks like. */

export const TARGET_REFUSALS = [
  "too_long",
  "not_a_url",
  "not_https",
  "credentials_in_url",
  "fragment",
  "host_not_public",
  "port_not_allowed",
  "not_canonical",
  "too_many_addresses",
] as const;
export type TargetRefusal = (typeof TARGET_REFUSALS)[number];

/** One sentence for the owner, whole. */
export const TARGET_REFUSAL_SENTENCES: Readonly<Record<TargetRefusal, string>> = {
  too_long: "The address is too long.",
  not_a_url: "This is no web address.",
  not_https: "A webhook goes to an https address only.",
  credentials_in_url: "The address must not hold a user name or password.",
  fragment: "The address must not hold a fragment.",
  host_not_public: "The host is not a public one, or not all of its addresses are.",
  port_not_allowed: "A webhook goes to port 443 or 8443 only.",
  not_canonical: "The address is not written as it is read; write the host in small ASCII letters or plain digits.",
  too_many_addresses: "The host has too many addresses.",
};

/**
 * Whether this machine may be a target: `allowed` for `test` consumers where WEBHOOK_ALLOW_LOOPBACK is on, by http or
 * https and on any port; else `refused`.
 */
export type LoopbackRule = "refused" | "allowed";
