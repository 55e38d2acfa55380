/**
 * Reads a consumer's deliveries as they come and forwards each to a local address. In order and at least once: the next
 * one is only sent once the target has taken the one before.
 */
import { z } from "zod";
import { ServiceRefusal } from "../device-error.ts";
import type { DeviceTransport } from "../device-transport.ts";
import { clientLimits } from "../limits.ts";
import { createBackoff, pause } from "../pace.ts";
import { repeatUntilAnswered } from "../repeat.ts";
import { CommandError } from "./command-error.ts";
import { post } from "./local-target.ts";

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

export interface ListenDeps {
  readonly transport: DeviceTransport;
  readonly credential: string;
  readonly target: URL;
  readonly secret: string;
  readonly sinceId: number | undefined;
  readonly signal: AbortSignal;
  /** Prints one line for a person. */
  readonly say: (line: string) => void;
}

/** Runs until the signal is aborted. Throws `CommandError` when the credential is refused or the target takes nothing. */
export async function listen(deps: ListenDeps): Promise<void> {
  const { signal, say, target } = deps;
  let cursor = deps.sinceId ?? (await newest(deps));
  if (signal.aborted) return;
  say(`Forwarding what comes behind delivery ${cursor} to ${target.href}; Ctrl-C ends it.`);
  while (!signal.aborted) {
    const page = await readPage(deps, cursor);
    for (const delivery of page?.webhook_deliveries ?? []) {
      if (!(await forward(deps, delivery))) break;
      cursor = delivery.delivery_id;
    }
    if (page?.has_more !== true) await pause(clientLimits.listenPollMs, signal);
  }
  say(`Go on where this ended with --since-id ${cursor}.`);
}

/** The last delivery there is: it and all before are old news. */
async function newest(deps: ListenDeps): Promise<number> {
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
  { transport, credential, signal, say }: ListenDeps,
  sinceId: number,
): Promise<Page | undefined> {
  const path = `webhook-deliveries/?since_id=${sinceId}&limit=${clientLimits.deliveriesPerPage}`;
  let trouble = "";
  const onRetry = (error: unknown): void => {
    const reason = error instanceof Error ? error.message : "The service does not answer.";
    if (reason !== trouble) say(`${reason} Waiting for it.`);
    trouble = reason;
  };
  const ask = () => transport.send({ method: "GET", path, credential, signal }, pageSchema);
  try {
    return (await repeatUntilAnswered(ask, { signal, maxTries: Number.POSITIVE_INFINITY, onRetry })).body;
  } catch (error) {
    if (signal.aborted) return undefined;
    if (error instanceof ServiceRefusal && error.httpStatus === 401)
      throw new CommandError("The service does not take the consumer's credential; ask the owner for a new one.");
    throw error;
  }
}

/** Whether the target has taken it; false only when the signal was aborted. Throws `CommandError` after the last try. */
async function forward({ target, secret, signal, say }: ListenDeps, delivery: Delivery): Promise<boolean> {
  const { delivery_id, event_type, created_at, payload } = delivery;
  // The very bytes that the service sends: the same fields in the same order.
  const body = JSON.stringify({ delivery_id, event_type, created_at, payload });
  const backoff = createBackoff({ firstMs: clientLimits.backoffFirstMs, maxMs: clientLimits.backoffMaxMs });
  for (let tries = 1; !signal.aborted; tries += 1) {
    const startedAtMs = performance.now();
    const status = await post(target, { body, secret, signal });
    if (signal.aborted && status === undefined) return false;
    const tookMs = Math.round(performance.now() - startedAtMs);
    const outcome = status === undefined ? "no answer" : `${status}`;
    if (status !== undefined && status >= 200 && status <= 299) {
      say(`${delivery_id}  ${event_type}  ${outcome} in ${tookMs} ms`);
      return true;
    }
    if (tries >= clientLimits.forwardTries) {
      const before = delivery_id - 1;
      throw new CommandError(
        `${target.host} did not take delivery ${delivery_id} in ${tries} tries; start again with --since-id ${before} once it does.`,
      );
    }
    const waitMs = backoff.nextMs();
    say(`${delivery_id}  ${event_type}  ${outcome}; again in ${(waitMs / 1_000).toFixed(1)} s`);
    await pause(waitMs, signal);
  }
  return false;
}
