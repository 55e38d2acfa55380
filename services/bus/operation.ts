/**
 * Request and reply over the bus with one schema for both sides. An operation is data (subject, request, reply);
 * `serve` answers it from one of several processes, `call` asks.
 */
import type { Msg, NatsConnection, Subscription } from "nats";
import { z } from "zod";
import { deadlineHeaders, dropLate, type LateLog } from "./deadline.ts";
import { mustWait, STORAGE_LOW } from "./disk-gate.ts";
import { issueSentence } from "./issue-sentence.ts";
import { BUS_LIMITS } from "./limits.ts";
import { AskedServiceRefused, type BusRefusal, busRefusalSchema, RefusedError, UnavailableError } from "./refusals.ts";
import { turnPublisher } from "./turn-publisher.ts";

export interface Operation<TRequest extends z.ZodType, TReply extends z.ZodType> {
  readonly subject: string;
  readonly request: TRequest;
  readonly reply: TReply;
}

export type RequestOf<TOperation> = TOperation extends Operation<infer TRequest, z.ZodType> ? z.infer<TRequest> : never;
export type ReplyOf<TOperation> = TOperation extends Operation<z.ZodType, infer TReply> ? z.infer<TReply> : never;

export function defineOperation<TRequest extends z.ZodType, TReply extends z.ZodType>(
  subject: string,
  request: TRequest,
  reply: TReply,
): Operation<TRequest, TReply> {
  return { subject, request, reply };
}

/** What a service logs about one failed request; pino fits. */
export interface FailureLog extends LateLog {
  error(fields: object, message: string): void;
}

/**
 * Answers an operation. A `RefusedError` becomes the reply; anything else is logged and answered as unavailable, so
 * that a caller never waits for a reply that will not come.
 */
export function serve<TRequest extends z.ZodType, TReply extends z.ZodType>(
  deps: {
    readonly nc: NatsConnection;
    readonly log: FailureLog;
    readonly queue: string;
    /** Requests that one process works on at once; a handler that refuses by limits of its own has a higher one. */
    readonly requestsInFlight?: number;
  },
  operation: Operation<TRequest, TReply>,
  handler: (request: z.infer<TRequest>) => Promise<z.infer<TReply>>,
): Subscription {
  const { requestsInFlight = BUS_LIMITS.requestsInFlight } = deps;
  let inFlight = 0;
  const answer = async (message: Msg): Promise<void> => {
    // Its caller has been told that nobody answered; done now, it would be done behind the caller's back.
    if (dropLate(deps, message, operation.subject)) return;
    if (mustWait(deps.nc, operation.subject)) return respond(deps.nc, message, { refusal: STORAGE_LOW });
    if (inFlight >= requestsInFlight)
      return respond(deps.nc, message, { refusal: { code: "busy", retryAfterMs: 1_000 } });
    inFlight += 1;
    try {
      const parsed = operation.request.safeParse(message.json(), { error: issueSentence });
      if (!parsed.success) return respond(deps.nc, message, { refusal: invalidRequest(parsed.error) });
      respond(deps.nc, message, { reply: await handler(parsed.data) });
    } catch (error) {
      if (error instanceof RefusedError) return respond(deps.nc, message, { refusal: refusalOf(error) });
      deps.log.error({ err: error, subject: operation.subject }, "a request failed");
      respond(deps.nc, message, { refusal: { code: "unavailable", retryAfterMs: 1_000 } });
    } finally {
      inFlight -= 1;
    }
  };
  return deps.nc.subscribe(operation.subject, {
    queue: deps.queue,
    callback: (error, message) => {
      if (error === null) void answer(message);
      else deps.log.error({ err: error, subject: operation.subject }, "a subscription failed");
    },
  });
}

/** The codes with which a service says that it has done nothing yet. */
const NOTHING_DONE: readonly string[] = ["busy", "storage_low"] satisfies BusRefusal["code"][];

/**
 * A handler that answers `busy` has done nothing. When another service says `busy` to the handler, the handler may have done
 * something before it asked, so its caller gets `unavailable`.
 */
function refusalOf(error: RefusedError): BusRefusal {
  const { refusal } = error;
  const mayBeHalfDone = error instanceof AskedServiceRefused && NOTHING_DONE.includes(refusal.code);
  return mayBeHalfDone ? { ...refusal, code: "unavailable" } : refusal;
}

/** Zod's issues as field errors with JSON pointers (design §4, "bodies"). */
export function invalidRequest(error: z.ZodError): BusRefusal {
  const errors = error.issues.slice(0, 32).map((issue) => ({
    pointer: issue.path.map((token) => `/${String(token).replaceAll("~", "~0").replaceAll("/", "~1")}`).join(""),
    detail: issue.message,
  }));
  return { code: "invalid_request", errors };
}

function respond(
  nc: NatsConnection,
  message: Msg,
  body: { readonly reply: unknown } | { readonly refusal: BusRefusal },
): void {
  if (message.reply !== undefined) turnPublisher(nc).publish(message.reply, JSON.stringify(body));
}

const envelopeSchema = z.union([z.object({ refusal: busRefusalSchema }), z.object({ reply: z.unknown() })]);

/** Asks; throws `RefusedError` when the service refuses and `UnavailableError` when nobody answers in time. */
export async function call<TRequest extends z.ZodType, TReply extends z.ZodType>(
  nc: NatsConnection,
  operation: Operation<TRequest, TReply>,
  request: z.infer<TRequest>,
  timeoutMs: number = BUS_LIMITS.callMs,
): Promise<z.infer<TReply>> {
  const message = await nc
    .request(operation.subject, JSON.stringify(request), {
      timeout: timeoutMs,
      headers: deadlineHeaders(nc, timeoutMs),
    })
    .catch((error: unknown) => {
      throw new UnavailableError(operation.subject, error);
    });
  const envelope = envelopeSchema.parse(message.json());
  if ("refusal" in envelope) throw new AskedServiceRefused(envelope.refusal);
  return operation.reply.parse(envelope.reply);
}
