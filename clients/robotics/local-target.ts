/** A program on this very machine that takes forwarded webhooks, and nothing else. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { clientLimits } from "../limits.ts";
import { CommandError } from "./command-error.ts";
import { SIGNATURE_HEADER, sign } from "./signature.ts";

/** The address as it will be called. Throws `CommandError` unless it is http or https on loopback. */
export async function checkLocalTarget(text: string): Promise<URL> {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new CommandError(`--forward-to is an http or https address, and not "${text}".`);
  if (url.username !== "" || url.password !== "")
    throw new CommandError("--forward-to must not hold a user name or password.");
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const addresses = isIP(host) > 0 ? [host] : await addressesOf(host);
  if (addresses.length === 0 || !addresses.every(isLoopback))
    throw new CommandError(`Deliveries are forwarded to this machine only, and ${url.host} is not on loopback.`);
  return url;
}

/** Only the name of this machine is resolved: any other name could mean another machine a moment later. */
async function addressesOf(host: string): Promise<readonly string[]> {
  if (host !== "localhost") return [];
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

const isLoopback = (address: string): boolean =>
  address === "::1" || (isIP(address) === 4 && address.startsWith("127."));

/** The status that the target answered, or undefined when it did not in time. Only 2xx means that it has the delivery. */
export async function post(
  target: URL,
  { body, secret, signal }: { readonly body: string; readonly secret: string; readonly signal: AbortSignal },
): Promise<number | undefined> {
  try {
    const response = await fetch(target, {
      method: "POST",
      headers: { "content-type": "application/json", [SIGNATURE_HEADER]: sign(secret, { body, nowMs: Date.now() }) },
      body,
      redirect: "manual",
      signal: AbortSignal.any([signal, AbortSignal.timeout(clientLimits.forwardTimeoutMs)]),
    });
    await response.body?.cancel();
    return response.status;
  } catch {
    return undefined;
  }
}
