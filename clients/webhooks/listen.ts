/**
 * Polls a consumer's deliveries and forwards them to a local address, in order and at least once: it forwards a
 * delivery only after the target has accepted the delivery before it.
 */
import { createHmac, randomBytes } from "node:crypto";
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { z } from "zod";
import { CommandError } from "../command.ts";
import { createBackoff, pause, repeatUntilAnswered } from "../http/pace.ts";
import { ServiceError, type ServiceTransport } from "../http/transport.ts";
import { clientLimits } from "../limits.ts";
import type { Progress } from "./arguments.ts";

const pageSchema = z.looseObject({
  webhook_deliveries: z.array(
    z.looseObject({
      delivery_id: z.int(),
      event_type: z.string(),
      created_at: z.string(),
      payload: z.record(z.string(), z.unknown()),
    }),
  ),
  has_more: z.boolean(),
});
type Page = z.infer<typeof pageSchema>;
type Delivery = Page["webhook_deliveries"][number];

interface ListenDeps {
  readonly transport: ServiceTransport;
  readonly credential: string;
  readonly target: URL;
  readonly secret: string;
  readonly sinceId: number | undefined;
  readonly signal: AbortSignal;
  readonly progress: Progress;
}

/** Runs until the signal is aborted. Throws `CommandError` for a refused credential or a target that keeps failing. */
export async function listen(deps: ListenDeps): Promise<void> {
  const { signal, progress, target } = deps;
  let cursor = deps.sinceId ?? (await newestDeliveryId(deps));
  if (signal.aborted) return;
  progress(`Forwarding the deliveries after delivery ${cursor} to ${target.href}; Ctrl-C ends it.`, {
    step: "listening",
    since_id: cursor,
    forward_to: target.href,
  });
  while (!signal.aborted) {
    const page = await readPage(deps, cursor);
    for (const delivery of page?.webhook_deliveries ?? []) {
      if (!(await forward(deps, delivery))) break;
      cursor = delivery.delivery_id;
    }
    if (page?.has_more !== true) await pause(clientLimits.listenPollMs, signal);
  }
  progress(`To continue from here, use --since-id ${cursor}.`, { step: "ended", since_id: cursor });
}

/** The id of the last delivery that is stored: `listen` forwards only later ones. */
async function newestDeliveryId(deps: ListenDeps): Promise<number> {
  let cursor = 0;
  while (!deps.signal.aborted) {
    const page = await readPage(deps, cursor);
    cursor = page?.webhook_deliveries.at(-1)?.delivery_id ?? cursor;
    if (page?.has_more !== true) break;
  }
  return cursor;
}

/** Undefined only when the signal was aborted. */
async function readPage(
  { transport, credential, signal, progress }: ListenDeps,
  sinceId: number,
): Promise<Page | undefined> {
  const path = `webhook-deliveries/?since_id=${sinceId}&limit=${clientLimits.deliveriesPerPage}`;
  let printed = "";
  const onRetry = (error: unknown): void => {
    const reason = error instanceof Error ? error.message : "The service does not answer.";
    if (reason !== printed) progress(`${reason} Waiting for the service.`, { step: "waiting", reason });
    printed = reason;
  };
  const attempt = () => transport.send({ method: "GET", path, credential, signal }, pageSchema);
  try {
    return (await repeatUntilAnswered(attempt, { signal, maxTries: Number.POSITIVE_INFINITY, onRetry })).body;
  } catch (error) {
    if (signal.aborted) return undefined;
    if (error instanceof ServiceError && error.httpStatus === 401)
      throw new CommandError("The service does not accept the consumer's credential; ask the owner for a new one.");
    throw error;
  }
}

/** False only when the signal was aborted. Throws `CommandError` when the target refuses every try. */
async function forward({ target, secret, signal, progress }: ListenDeps, delivery: Delivery): Promise<boolean> {
  const { delivery_id, event_type, created_at, payload } = delivery;
  // The same bytes as the service sends: the same fields in the same order.
  const body = JSON.stringify({ delivery_id, event_type, created_at, payload });
  const backoff = createBackoff({ firstMs: clientLimits.backoffFirstMs, maxMs: clientLimits.backoffMaxMs });
  for (let tries = 1; !signal.aborted; tries += 1) {
    const startedAtMs = performance.now();
    const status = await post(target, { body, secret, signal });
    if (signal.aborted && status === undefined) return false;
    const tookMs = Math.round(performance.now() - startedAtMs);
    const outcome = status === undefined ? "no answer" : `${status}`;
    if (status !== undefined && status >= 200 && status <= 299) {
      progress(`${delivery_id}  ${event_type}  ${outcome} in ${tookMs} ms`, {
        step: "forwarded",
        delivery_id,
        event_type,
        http_status: status,
        took_ms: tookMs,
      });
      return true;
    }
    if (tries >= clientLimits.forwardTries) {
      const before = delivery_id - 1;
      throw new CommandError(
        `${target.host} did not accept delivery ${delivery_id} in ${tries} tries; fix the target and start again with --since-id ${before}.`,
      );
    }
    const waitMs = backoff.nextMs();
    progress(`${delivery_id}  ${event_type}  ${outcome}; again in ${(waitMs / 1_000).toFixed(1)} s`, {
      step: "repeating",
      delivery_id,
      event_type,
      http_status: status ?? null,
      again_in_ms: waitMs,
    });
    await pause(waitMs, signal);
  }
  return false;
}

/** Parses the address of the target. Throws `CommandError` unless the address is http or https on loopback. */
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

/** Resolves `localhost` only: the address of any other name could change after this check. */
async function addressesOf(host: string): Promise<readonly string[]> {
  if (host !== "localhost") return [];
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

const isLoopback = (address: string): boolean =>
  address === "::1" || (isIP(address) === 4 && address.startsWith("127."));

/** The status of the target's answer; undefined without an answer in time. Only 2xx means that it has the delivery. */
async function post(
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

const SIGNATURE_HEADER = "X-Service-Robotics-Signature";

/** Makes a secret in the format of the service's secrets. */
export const newSecret = (): string => `whsec_${randomBytes(32).toString("base64url")}`;

function sign(secret: string, { body, nowMs }: { readonly body: string; readonly nowMs: number }): string {
  const t = Math.floor(nowMs / 1_000);
  return `t=${t},v1=${createHmac("sha256", secret).update(`${t}.`).update(body).digest("hex")}`;
}
