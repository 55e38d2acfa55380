/** Sends commands to a station's actor, for the gateway and the relay. */
import { errors, type Msg, type MsgHdrs, type NatsConnection } from "nats";
import { partitionOf } from "../../machines/partition.ts";
import { onClosed } from "./closed-partitions.ts";
import { deadlineHeaders } from "./deadline.ts";
import { BUS_LIMITS } from "./limits.ts";
import type { StationFailure, StationRequest, StationResponse } from "./messages/station-commands.ts";
import { AskedServiceRefused, isNoResponders, UnavailableError } from "./refusals.ts";
import { stationCommandSubject } from "./subjects.ts";

/** In the sentence of an error. It is the same for all stations, so that the log has one line about all (`outage.ts`). */
const ACTOR = "the station's actor";

/**
 * Asks the actor of a station and returns its answer, which may be a refusal (`reply.ok` false).
 *
 * While no host owns the station's partition, or no answer comes for a while, it sends the same request again, until
 * `timeoutMs` has passed. The `commandId` is the same, so the command takes effect at most once, and the first answer
 * counts. Then it throws `UnavailableError`: the outcome is unknown, and the caller may repeat the request.
 *
 * Throws `RefusedError` when nothing was done: `busy` when the station has too much to do, `storage_low` when no
 * collection may begin because the disk is full, and `invalid_request` when its host does not understand the command.
 * After an attempt with an unknown outcome it does not throw `RefusedError`, because that attempt may have taken
 * effect. The caller then gets the station's answer or `UnavailableError`.
 */
export async function askStation(
  nc: NatsConnection,
  stationId: number,
  request: StationRequest,
  options: { readonly timeoutMs?: number } = {},
): Promise<StationResponse> {
  const subject = stationCommandSubject(stationId);
  const host = { nc, partition: partitionOf(stationId) };
  const payload = JSON.stringify(request);
  const timeoutMs = options.timeoutMs ?? BUS_LIMITS.askMs;
  const deadlineMs = performance.now() + timeoutMs;
  const headers = deadlineHeaders(nc, timeoutMs);
  let pauseMs: number = BUS_LIMITS.askPauseMs;
  let mayBeDone = false;
  const underWay = new Set<Promise<Failure | undefined>>();
  // Of any attempt. It may come together with the failure of another one.
  let response: StationResponse | undefined;
  for (;;) {
    const leftMs = Math.max(1, deadlineMs - performance.now());
    const one: Promise<Failure | undefined> = attempt(nc, { subject, payload, headers }, leftMs)
      .then((answer) => {
        if (!("reply" in answer)) return answer;
        response ??= answer;
        return undefined;
      })
      .finally(() => underWay.delete(one));
    underWay.add(one);
    const failure = await firstOf(underWay, Math.min(leftMs, BUS_LIMITS.askAgainMs), host);
    if (response !== undefined) return response;
    if (failure === undefined) {
      mayBeDone = true;
      if (performance.now() >= deadlineMs) throw new UnavailableError(ACTOR, new Error("There was no answer in time."));
      continue;
    }
    if (!mayBeDone) throwIfRefused(failure);
    mayBeDone ||= isOutcomeUnknown(failure);
    // A pause with a random part: during a hand-over of a partition, its hundreds of callers must not all repeat at the
    // same time.
    const waitMs = pauseMs * (0.5 + Math.random());
    if (performance.now() + waitMs >= deadlineMs)
      throw new UnavailableError(ACTOR, "cause" in failure ? failure.cause : failure);
    // The answer to an earlier attempt may come meanwhile.
    await firstOf(underWay, waitMs);
    if (response !== undefined) return response;
    pauseMs = Math.min(pauseMs * 2, BUS_LIMITS.askLongestPauseMs);
  }
}

type Failure = StationFailure | { readonly cause: unknown };

function throwIfRefused(answer: Failure): void {
  if (!("failure" in answer)) return;
  if (answer.failure === "busy" || answer.failure === "storage_low")
    throw new AskedServiceRefused({ code: answer.failure, retryAfterMs: answer.retryAfterMs });
  if (answer.failure === "invalid_request")
    throw new AskedServiceRefused({ code: "invalid_request", errors: [...answer.errors] });
}

/** Whether the attempt may have taken effect. It has not when the bus has found no host for it. */
function isOutcomeUnknown(answer: Failure): boolean {
  if ("failure" in answer) return answer.failure === "unavailable";
  return !isNoResponders(answer.cause);
}

/**
 * The first failure of these attempts. Undefined when one is answered, when none ends in time, or soon after the host has closed
 * the partition.
 */
function firstOf(
  attempts: ReadonlySet<Promise<Failure | undefined>>,
  withinMs: number,
  host?: { readonly nc: NatsConnection; readonly partition: number },
): Promise<Failure | undefined> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      stopListening?.();
    };
    const wait = (ms: number): NodeJS.Timeout =>
      setTimeout(() => {
        end();
        resolve(undefined);
      }, ms);
    let timer = wait(withinMs);
    const stopListening =
      host &&
      onClosed(host.nc, host.partition, () => {
        clearTimeout(timer);
        timer = wait(Math.min(withinMs, BUS_LIMITS.askAgainClosedMs));
      });
    const first =
      <T>(settle: (value: T) => void) =>
      (value: T): void => {
        end();
        settle(value);
      };
    for (const one of attempts) one.then(first(resolve), first(reject));
  });
}

async function attempt(
  nc: NatsConnection,
  asked: { readonly subject: string; readonly payload: string; readonly headers: MsgHdrs },
  timeoutMs: number,
): Promise<StationResponse | Failure> {
  let message: Msg;
  try {
    message = await nc.request(asked.subject, asked.payload, {
      timeout: timeoutMs,
      headers: asked.headers,
    });
  } catch (cause) {
    if (cause instanceof errors.ClosedConnectionError) throw new UnavailableError(ACTOR, cause);
    return { cause };
  }
  return message.json<StationResponse | StationFailure>();
}
