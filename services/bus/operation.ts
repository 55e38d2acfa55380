/**
 * Request and reply over the bus with one schema for both sides. An operation is data: subject, request and reply.
 * `call` sends a request; `serve` answers it in one of several processes.
 */
import { type Msg, type NatsConnection, nuid } from "nats";
import { z } from "zod";
import { forRequest } from "../runtime/log.ts";
import { within } from "../runtime/repeat.ts";
import { dropLate, type LateLog, requestIdOf, startLateCount } from "./deadline.ts";
import { mustWait, STORAGE_LOW } from "./disk-gate.ts";
import { type Answer, exchange, type Interim, probeSubject } from "./exchange.ts";
import { FOR_FIELD_ERRORS, fieldErrors } from "./field-errors.ts";
import { BUS_LIMITS } from "./limits.ts";
import { Failures } from "./outage.ts";
import { AskedServiceRefused, type BusRefusal, busRefusalSchema, RefusedError, UnavailableError } from "./refusals.ts";
import { turnPublisher } from "./turn-publisher.ts";

/**
 * Whether a request may be carried out twice. A caller without an answer sends its request to another process
 * (`exchange.ts`), while the first process may still carry it out later. So each operation declares what a second execution does.
 */
export const REPETITIONS = [
  /**
   * A second execution changes nothing more, and its answer is as good as the first one: reads, and writes with a
   * unique key.
   */
  "repeatable",
  /** A second execution would do something twice, or undo a change in between: only one process may carry it out. */
  "once",
  /** `repeatable` with the request's `idempotencyKey`, `once` without it. */
  "repeatable_with_key",
] as const;
type Repetition = (typeof REPETITIONS)[number];

/**
 * Resolves to whether this process may carry out the request. Of all processes that claim the same id, only one may.
 */
export type ClaimRequest = (requestId: string) => Promise<boolean>;

/** Claims the request that a handler works on. Rejects when another process has claimed it: the handler must not go on. */
export type ClaimNow = () => Promise<void>;

class ClaimedElsewhereError extends Error {}

export function needsClaim(repetition: Repetition, request: unknown): boolean {
  if (repetition !== "repeatable_with_key") return repetition === "once";
  return (request as { readonly idempotencyKey?: unknown }).idempotencyKey === undefined;
}

export interface Operation<TRequest extends z.ZodType, TReply extends z.ZodType> {
  readonly subject: string;
  readonly repetition: Repetition;
  readonly request: TRequest;
  readonly reply: TReply;
}

export type RequestOf<TOperation> = TOperation extends Operation<infer TRequest, z.ZodType> ? z.infer<TRequest> : never;
/** The request as a caller sends it: fields with a default may be missing. */
export type SentRequestOf<TOperation> =
  TOperation extends Operation<infer TRequest, z.ZodType> ? z.input<TRequest> : never;
export type ReplyOf<TOperation> = TOperation extends Operation<z.ZodType, infer TReply> ? z.infer<TReply> : never;
/** Answers one operation. Throws `RefusedError`. */
export type Handler<TDeps, TOperation> = (deps: TDeps, request: RequestOf<TOperation>) => Promise<ReplyOf<TOperation>>;

const subjects = new Set<string>();
/** The subjects of all operations that this process may call: a counter by operation starts each of them at 0. */
export const knownOperations = (): readonly string[] => [...subjects];

const define =
  (repetition: Repetition) =>
  <TRequest extends z.ZodType, TReply extends z.ZodType>(
    subject: string,
    request: TRequest,
    reply: TReply,
  ): Operation<TRequest, TReply> => {
    subjects.add(subject);
    return { subject, repetition, request, reply };
  };
export const repeatable = define("repeatable");
export const once = define("once");
export const repeatableWithKey = define("repeatable_with_key");

/** What a service logs about one failed request; pino fits. */
export interface FailureLog extends LateLog {
  error(fields: object, message: string): void;
}

export interface ServeDeps {
  readonly nc: NatsConnection;
  readonly log: FailureLog;
  readonly queue: string;
  /** Requests that one process works on at once. It is higher for a handler that has its own limits. */
  readonly requestsInFlight?: number;
  /**
   * Prevents two processes from carrying out the same request; required for operations that only one process may carry
   * out.
   */
  readonly claim?: ClaimRequest;
  /**
   * Whether this process cannot reach what its handlers need. It then reports no progress and offers to take no
   * request, so that the caller asks another process. With the error of a failed request: whether that is the reason.
   */
  readonly isSilent?: (error?: unknown) => boolean;
  /**
   * The handler claims the request itself, before its first change. So a refused request costs no claim: for operations
   * that need no session.
   */
  readonly handlerClaims?: boolean;
}

/** One operation that this process answers. */
export interface Serving {
  /** Receives no more requests; this process carries out and answers those under way. */
  unsubscribe(): void;
  /**
   * Like `unsubscribe`. Resolves when all requests are answered, and after `BUS_LIMITS.finishMs` at the latest. Never
   * rejects.
   */
  drain(): Promise<void>;
}

/**
 * Answers an operation, beside other processes of the same queue group. A `RefusedError` becomes the reply. For any
 * other error it logs the error and answers `unavailable`, so that no caller waits for a reply that never comes.
 */
export function serve<TRequest extends z.ZodType, TReply extends z.ZodType>(
  deps: ServeDeps,
  operation: Operation<TRequest, TReply>,
  handler: (request: z.infer<TRequest>, claimNow: ClaimNow) => Promise<z.infer<TReply>>,
): Serving {
  const { nc, log, queue, claim, handlerClaims = false, requestsInFlight = BUS_LIMITS.requestsInFlight } = deps;
  const { isSilent = () => false } = deps;
  const { subject, repetition } = operation;
  // Only this process receives messages on this subject.
  const direct = `${probeSubject(subject)}.${nuid.next()}`;
  if (repetition !== "repeatable" && claim === undefined) {
    throw new Error(`${subject} may be carried out once only: its service must claim its requests.`);
  }
  startLateCount(nc, subject);
  const failures = new Failures((...line) => log.error(...line), "a request failed");
  const running = new RunningRequests((inbox) => {
    if (!isSilent()) publish(nc, inbox, { working: true });
  });
  const answer = async (message: Msg): Promise<Answer | Interim> => {
    let hasClaimed = false;
    try {
      const parsed = operation.request.safeParse(message.json(), FOR_FIELD_ERRORS);
      if (!parsed.success) return { refusal: invalidRequest(parsed.error) };
      const { reply: id } = message;
      let mustClaim = id !== undefined && needsClaim(repetition, parsed.data);
      const claimNow = async (): Promise<void> => {
        if (!mustClaim) return;
        if (!(await claim?.(id as string))) throw new ClaimedElsewhereError();
        mustClaim = false;
        hasClaimed = true;
      };
      if (!handlerClaims) await claimNow();
      const reply = await handler(parsed.data, claimNow);
      if (mustClaim) throw new Error("The handler has not claimed its request.");
      return { reply };
    } catch (error) {
      if (error instanceof ClaimedElsewhereError) return { claimed: true };
      if (error instanceof RefusedError) return { refusal: refusalOf(error) };
      failures.failed(error, { subject });
      const refusal = { code: "unavailable", retryAfterMs: 1_000 } as const;
      // No other process may carry out what this one has claimed.
      return !hasClaimed && isSilent(error) ? { refusal, cutOff: direct } : { refusal };
    }
  };
  const receive = (message: Msg): void => {
    // The caller of a late request already has an error: the request must not take effect any more.
    if (dropLate(deps, message, subject) || running.has(message.reply)) return;
    if (mustWait(nc, subject)) return publish(nc, message.reply, { refusal: STORAGE_LOW });
    if (running.size >= requestsInFlight)
      return publish(nc, message.reply, { refusal: { code: "busy", retryAfterMs: 1_000 } });
    running.run(message.reply, async () => publish(nc, message.reply, await answer(message)));
  };
  const receiveForRequest = (message: Msg): void => forRequest(requestIdOf(message), () => receive(message));
  const probed = (message: Msg): void => {
    if (isSilent()) return;
    if (running.has(message.reply)) publish(nc, message.reply, { working: true });
    else if (running.size < requestsInFlight) publish(nc, message.reply, { offer: direct });
  };
  const subscribe = (to: string, take: (message: Msg) => void, options: { readonly queue?: string } = {}) =>
    nc.subscribe(to, {
      ...options,
      callback: (error, message) => {
        if (error === null) take(message);
        else log.error({ err: error, subject: to }, "a subscription failed");
      },
    });
  const subscriptions = [
    subscribe(probeSubject(subject), probed),
    subscribe(direct, receiveForRequest),
    subscribe(subject, receiveForRequest, { queue }),
  ];
  return {
    unsubscribe() {
      for (const subscription of subscriptions) subscription.unsubscribe();
    },
    async drain() {
      // A drain still receives what the server has sent already. Without a connection it fails, and there is nothing to
      // receive.
      await Promise.allSettled(subscriptions.map((subscription) => subscription.drain()));
      await running.finished();
    },
  };
}

/** `serve` for the handlers of one service: each handler gets the service's `deps`. */
export const serveWith =
  <TDeps>(responder: ServeDeps, deps: TDeps) =>
  <TRequest extends z.ZodType, TReply extends z.ZodType>(
    operation: Operation<TRequest, TReply>,
    handle: (deps: TDeps, request: z.infer<TRequest>, claimNow: ClaimNow) => Promise<z.infer<TReply>>,
  ): Serving =>
    serve(responder, operation, (request, claimNow) => handle(deps, request, claimNow));

/** The codes of a service that has done nothing yet. */
const NOTHING_DONE: readonly string[] = ["busy", "storage_low"] satisfies BusRefusal["code"][];

/**
 * A service that answers `busy` has done nothing. But when a handler receives `busy` from another service, it may have
 * changed something before its call. So its caller gets `unavailable`.
 */
function refusalOf(error: RefusedError): BusRefusal {
  const { refusal } = error;
  const mayBeHalfDone = error instanceof AskedServiceRefused && NOTHING_DONE.includes(refusal.code);
  return mayBeHalfDone ? { ...refusal, code: "unavailable" } : refusal;
}

/** Zod's issues as field errors with JSON pointers (design §4, "bodies"). */
export function invalidRequest(error: z.ZodError): BusRefusal {
  return { code: "invalid_request", errors: fieldErrors(error.issues).slice(0, 32) };
}

function publish(nc: NatsConnection, inbox: string | undefined, body: Answer | Interim): void {
  if (inbox !== undefined) turnPublisher(nc).publish(inbox, JSON.stringify(body));
}

const envelopeSchema = z.union([z.object({ refusal: busRefusalSchema }), z.object({ reply: z.unknown() })]);

/**
 * Sends the request and returns the reply. When a process does not answer, it asks another one while there is time.
 * Throws `RefusedError` when the service refuses, and `UnavailableError` when no process answers in time.
 */
export async function call<TRequest extends z.ZodType, TReply extends z.ZodType>(
  nc: NatsConnection,
  operation: Operation<TRequest, TReply>,
  request: z.input<TRequest>,
  timeoutMs: number = BUS_LIMITS.callMs,
): Promise<z.infer<TReply>> {
  const { subject } = operation;
  const { answer, isRepeated } = await exchange(nc, { subject, payload: JSON.stringify(request), timeoutMs }).catch(
    (error: unknown) => {
      throw new UnavailableError(subject, error);
    },
  );
  const envelope = envelopeSchema.parse(answer);
  if (!("refusal" in envelope)) return operation.reply.parse(envelope.reply);
  const refused = new AskedServiceRefused(envelope.refusal);
  // The process that did not answer may have carried out the request.
  if (isRepeated && NOTHING_DONE.includes(envelope.refusal.code)) throw new UnavailableError(subject, refused);
  throw refused;
}

/** The requests of one operation that a process works on. It sends progress messages for each (`exchange.ts`). */
class RunningRequests {
  readonly #reportWorking: (inbox: string) => void;
  readonly #running = new Map<string | symbol, Promise<void>>();

  constructor(reportWorking: (inbox: string) => void) {
    this.#reportWorking = reportWorking;
  }

  get size(): number {
    return this.#running.size;
  }

  has(inbox: string | undefined): boolean {
    return inbox !== undefined && this.#running.has(inbox);
  }

  /** Runs the work of a request. The caller waits on `inbox`; it is undefined when no caller waits. Never rejects. */
  run(inbox: string | undefined, work: () => Promise<void>): void {
    const key = inbox ?? Symbol("no inbox");
    const timer = inbox === undefined ? undefined : setTimeout(() => report(inbox), BUS_LIMITS.workingAfterMs);
    const report = (caller: string): void => {
      this.#reportWorking(caller);
      timer?.refresh();
    };
    const ended = work().finally(() => {
      clearTimeout(timer);
      this.#running.delete(key);
    });
    this.#running.set(key, ended);
  }

  /** Resolves when no request runs, and after `BUS_LIMITS.finishMs` at the latest. */
  async finished(): Promise<void> {
    await within(Promise.allSettled(this.#running.values()), BUS_LIMITS.finishMs);
  }
}
