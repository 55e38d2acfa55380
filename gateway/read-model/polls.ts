/**
 * `GET display`, `me` and `assignment`: answered from memory, completely, before the call returns (design §2.2).
 *
 *   gate (fresh? credential? throttle? scope?) ──► view of this commit ──► blocked? ──► 304 or 200
 *                                                                                └──► a `created` intent: the handler
 */
import type { HttpResponse } from "uWebSockets.js";
import { isRequestId } from "../../services/runtime/log.ts";
import type { AnswerWriter } from "../http/answer-writer.ts";
import type { ErrorCode } from "../http/errors.ts";
import type { ErrorFacts } from "../http/handler-context.ts";
import { type RequestHead, requestIdFrom } from "../http/request-head.ts";
import { type Answer, errorAnswer, type Headers } from "../http/response.ts";
import type { PollRoute } from "../http/route.ts";
import { CONNECTION_LIMITS } from "../limits.ts";
import { scopeBit } from "./credential-replica.ts";
import { type DeviceGate, SHUT, SHUT_CODES } from "./device-gate.ts";
import { matchesEtag } from "./etag.ts";
import type { PollNotes } from "./poll-notes.ts";
import { type PollName, type Rendered, TAIL } from "./rendered.ts";
import { CREDENTIAL_RATE, throttleHeaders, waitMs } from "./throttles.ts";
import type { ViewCache } from "./view-cache.ts";

/** The response is complete, or the writer completes it. */
export const ANSWERED = -1;

export interface PollDeps {
  readonly gate: DeviceGate;
  readonly views: ViewCache;
  /** The time of the bus, in whole milliseconds. */
  nowMs(): number;
  readonly counts: PollCounts;
  readonly writer: AnswerWriter;
  /** Whether the gateway must close the connection of an unknown caller with its answer. */
  isCrowded(res: HttpResponse): boolean;
  /** True once the gateway is shutting down: each answer then closes its connection. */
  isDraining(): boolean;
  /** Notes which device asked for its assignment. */
  readonly notes: Pick<PollNotes, "note">;
  /** Called for each error answer, for the log. */
  onRefused(path: string, code: ErrorCode, requestId: string): void;
}

/** The error codes of every poll, besides those of its row. */
const GATE_CODES = ["credential_missing", "credential_invalid", "throttled", "replica_stale"] as const;

/** Answers the polls of one route. */
export class Poll {
  readonly #deps: PollDeps;
  readonly #path: string;
  readonly #name: PollName;
  readonly #scopeBit: number;
  readonly #refusesBlocked: boolean;
  readonly #hasEtag: boolean;
  readonly #count: PollCount;

  constructor(deps: PollDeps, route: PollRoute & { readonly operationId: string }) {
    this.#deps = deps;
    this.#path = route.path;
    this.#name = route.poll;
    this.#scopeBit = scopeBit(route.who.scope);
    this.#refusesBlocked = route.who.blocked === "refused";
    this.#hasEtag = route.poll !== "self";
    this.#count = deps.counts.of(route.operationId, [...(route.errors ?? []), ...GATE_CODES]);
  }

  /** Answers and returns `ANSWERED`, or returns the credential's slot when memory is not enough. */
  answer(res: HttpResponse, head: RequestHead, isHead: boolean): number {
    const { gate, views } = this.#deps;
    const nowMs = this.#deps.nowMs();
    const slot = gate.pass(head.authorization, this.#scopeBit, nowMs);
    if (slot === SHUT.invalid) return this.#refuseUnknown({ res, head, isHead });
    if (slot < 0) return this.#refuseShut({ res, head, isHead }, slot, nowMs);
    const { table } = gate;
    const view = views.view(this.#name, slot, table.deviceId(slot), table.stationId(slot), nowMs);
    if (view === undefined) {
      return this.#refuse({ res, head, isHead }, views.whyNone(table.deviceId(slot), table.stationId(slot)));
    }
    if (this.#refusesBlocked && view.blocked !== "") {
      return this.#refuse({ res, head, isHead }, view.blocked as ErrorCode);
    }
    if (this.#name === "assignment") this.#deps.notes.note(gate.table, slot, nowMs);
    if (this.#hasEtag) {
      // This fetch presents the intent: no client has it yet, so the device's ETag cannot match.
      if (view.presents !== null) return isHead ? this.#fresh(res, head, view, nowMs, isHead) : slot;
      const known = head.ifNoneMatch;
      if (known !== "" && matchesEtag(known, view.etag)) return this.#unchanged(res, head, view);
    }
    return this.#fresh(res, head, view, nowMs, isHead);
  }

  #fresh(res: HttpResponse, head: RequestHead, view: Rendered, nowMs: number, isHead: boolean): number {
    this.#count.fresh += 1;
    view.unchangedInARow = 0;
    const body = view.head + serverTime(nowMs) + TAIL;
    if (isHead || this.#deps.isDraining()) {
      this.#end(res, { status: 200, headers: { "Content-Type": view.freshHeaders, ...echo(head) }, body }, isHead);
      return ANSWERED;
    }
    res.writeHeader("Content-Type", view.freshHeaders);
    if (head.requestId !== "") this.#echoRequestId(res, head.requestId);
    this.#deps.writer.send(res, body);
    return ANSWERED;
  }

  #unchanged(res: HttpResponse, head: RequestHead, view: Rendered): number {
    this.#count.unchanged += 1;
    view.unchangedInARow += 1;
    if (view.unchangedInARow >= CONNECTION_LIMITS.unchangedInARow || this.#deps.isDraining()) {
      view.unchangedInARow = 0;
      this.#end(res, { status: 304, headers: { ETag: view.unchangedHeaders, ...echo(head) }, body: undefined }, false);
      return ANSWERED;
    }
    res.writeStatus("304 Not Modified");
    res.writeHeader("ETag", view.unchangedHeaders);
    if (head.requestId !== "") this.#echoRequestId(res, head.requestId);
    res.endWithoutBody();
    head.isAnswered = true;
    return ANSWERED;
  }

  /** Answers and closes the connection. */
  #end(res: HttpResponse, answer: Answer, isHead: boolean): void {
    this.#deps.writer.write(res, answer, { isHead, close: true });
  }

  /** Only a client that has chosen an id can use it, because the gateway does not log single polls. */
  #echoRequestId(res: HttpResponse, requestId: string): void {
    if (isRequestId(requestId)) res.writeHeader("X-Request-Id", requestId);
  }

  #refuseShut(poll: Refused, shut: number, nowMs: number): number {
    const code = SHUT_CODES[shut] as ErrorCode;
    if (shut !== SHUT.throttled) return this.#refuse(poll, code);
    const retryAfterMs = waitMs(CREDENTIAL_RATE, this.#deps.gate.throttledUntilFullAtMs, nowMs);
    return this.#refuse(poll, code, { headers: throttleHeaders("credential", CREDENTIAL_RATE, retryAfterMs) });
  }

  /** Answers when it is certain that there is no such credential. */
  #refuseUnknown({ res, head: { requestId: clientsId, authorization }, isHead }: Refused): number {
    const isCrowded = this.#deps.isCrowded(res);
    const requestId = requestIdFrom(clientsId);
    void this.#deps.writer.writeLater(res, async () => {
      const code = await this.#deps.gate.whyInvalid(authorization);
      this.#count.refuse(code);
      this.#deps.onRefused(this.#path, code, requestId);
      return { answer: errorAnswer(code, requestId), options: { isHead, close: this.#deps.isDraining() || isCrowded } };
    });
    return ANSWERED;
  }

  #refuse({ res, head, isHead }: Refused, code: ErrorCode, facts?: ErrorFacts): number {
    const requestId = requestIdFrom(head.requestId);
    const answer = errorAnswer(code, requestId, facts);
    const isUnknownCaller = answer.status === 401;
    const close = this.#deps.isDraining() || (isUnknownCaller && this.#deps.isCrowded(res));
    this.#deps.writer.writeSoon(res, answer, { isHead, close });
    this.#count.refuse(code);
    this.#deps.onRefused(this.#path, code, requestId);
    return ANSWERED;
  }
}

/** A poll that is answered with an error. */
interface Refused {
  readonly res: HttpResponse;
  readonly head: RequestHead;
  readonly isHead: boolean;
}

function echo({ requestId }: RequestHead): Headers {
  return isRequestId(requestId) ? { "X-Request-Id": requestId } : {};
}

/** The counts of the answers to one operation's polls. They are plain numbers, because polls must be fast. */
class PollCount {
  /** 200 with a body. */
  fresh = 0;
  /** 304: the device has the newest view. */
  unchanged = 0;
  readonly #refused: Map<ErrorCode, number>;

  constructor(codes: readonly ErrorCode[] = []) {
    this.#refused = new Map(codes.map((code) => [code, 0]));
  }

  refuse(code: ErrorCode): void {
    this.#refused.set(code, (this.#refused.get(code) ?? 0) + 1);
  }

  /** By answer: `200`, `304`, or the error code. */
  *answers(): Generator<readonly [answer: string, count: number]> {
    yield ["200", this.fresh];
    yield ["304", this.unchanged];
    yield* this.#refused;
  }
}

export class PollCounts {
  readonly #counts = new Map<string, PollCount>();

  /** `codes`: the error codes of the operation. */
  of(operationId: string, codes: readonly ErrorCode[] = []): PollCount {
    const known = this.#counts.get(operationId);
    if (known !== undefined) return known;
    const made = new PollCount(codes);
    this.#counts.set(operationId, made);
    return made;
  }

  *answers(): Generator<readonly [labels: { readonly operation: string; readonly answer: string }, count: number]> {
    for (const [operation, count] of this.#counts) {
      for (const [answer, times] of count.answers()) yield [{ operation, answer }, times];
    }
  }
}

const MILLISECONDS = Array.from({ length: 1_000 }, (_, ms) => `${String(ms).padStart(3, "0")}Z`);

let second = -1;
let upToSecond = "";
let lastMs = -1;
let lastText = "";

/**
 * `server_time`, for example `2026-11-20T12:00:00.000Z`. Expects whole milliseconds, as the bus clock returns them. The date
 * is formatted once a second, because that costs more than the rest of an answer.
 */
export function serverTime(nowMs: number): string {
  if (nowMs === lastMs) return lastText;
  const nowSecond = Math.floor(nowMs / 1_000);
  if (nowSecond !== second) {
    second = nowSecond;
    upToSecond = new Date(nowSecond * 1_000).toISOString().slice(0, -"000Z".length);
  }
  lastMs = nowMs;
  lastText = upToSecond + (MILLISECONDS[nowMs - nowSecond * 1_000] as string);
  return lastText;
}
