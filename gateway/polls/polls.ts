/**
 * `GET display`, `me` and `assignment`: answered from memory, completely, before the call returns (design §8).
 *
 *   gate (fresh? credential? throttle? scope?) ──► view of this commit ──► blocked? ──► 304 or 200
 *                                                                                └──► a `created` intent: the handler
 */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import type { ErrorCode } from "../contract/errors.ts";
import type { RefusalFacts } from "../handlers/context.ts";
import { scopeBit } from "../replica/credential-replica.ts";
import type { PollRoute } from "../route.ts";
import { isSaneRequestId, requestIdFrom } from "../server/request-id.ts";
import { endBodiless, errorAnswer, writeAnswer } from "../server/response.ts";
import { CREDENTIAL_RATE } from "../throttle/limits.ts";
import { throttleHeaders, waitMs } from "../throttle/token-bucket.ts";
import { type DeviceGate, SHUT, SHUT_CODES } from "./device-gate.ts";
import { matchesEtag } from "./etag.ts";
import type { PollCount, PollCounts } from "./poll-count.ts";
import type { PollName } from "./poll-name.ts";
import type { PollNotes } from "./poll-notes.ts";
import { type Rendered, TAIL } from "./rendered.ts";
import { serverTime } from "./server-time.ts";
import type { ViewCache } from "./view-cache.ts";

/** Says that the response has been ended. */
export const ANSWERED = -1;

export interface PollDeps {
  readonly gate: DeviceGate;
  readonly views: ViewCache;
  readonly counts: PollCounts;
  /** True once the gateway is shutting down: each answer then closes its connection. */
  isDraining(): boolean;
  /** Takes note of who asks for an assignment. */
  readonly notes: Pick<PollNotes, "note">;
  /** Called for each refusal, for the log. */
  onRefused(path: string, code: ErrorCode, requestId: string): void;
}

/** How to answer one poll; made once per route. */
export class Poll {
  readonly #deps: PollDeps;
  readonly #path: string;
  readonly #name: PollName;
  readonly #scopeBit: number;
  readonly #refusesBlocked: boolean;
  readonly #hasEtag: boolean;
  readonly #count: PollCount;

  constructor(deps: PollDeps, route: PollRoute) {
    this.#deps = deps;
    this.#path = route.path;
    this.#name = route.poll;
    this.#scopeBit = scopeBit(route.who.scope);
    this.#refusesBlocked = route.who.blocked === "refused";
    this.#hasEtag = route.poll !== "self";
    this.#count = deps.counts.of(route.operationId);
  }

  /** Answers and returns `ANSWERED`, or returns the credential's slot when memory is not enough. */
  answer(res: HttpResponse, req: HttpRequest, isHead: boolean): number {
    const { gate, views } = this.#deps;
    const nowMs = Date.now();
    const slot = gate.pass(req.getHeader("authorization"), this.#scopeBit, nowMs);
    if (slot < 0) return this.#refuseShut(res, req, slot, nowMs);
    const { table } = gate;
    const view = views.view(this.#name, slot, table.deviceId(slot), table.stationId(slot), nowMs);
    if (view === undefined) {
      return this.#refuse(res, req, views.whyNone(table.deviceId(slot), table.stationId(slot)));
    }
    if (this.#refusesBlocked && view.blocked !== "") return this.#refuse(res, req, view.blocked as ErrorCode);
    if (this.#name === "assignment") this.#deps.notes.note(gate.table, slot, nowMs);
    if (this.#hasEtag) {
      // Nobody can have fetched what a fetch has yet to present, so no condition matches it.
      if (view.presents !== null) return isHead ? this.#fresh(res, req, view, nowMs, isHead) : slot;
      const known = req.getHeader("if-none-match");
      if (known !== "" && matchesEtag(known, view.etag)) return this.#unchanged(res, req, view);
    }
    return this.#fresh(res, req, view, nowMs, isHead);
  }

  #fresh(res: HttpResponse, req: HttpRequest, view: Rendered, nowMs: number, isHead: boolean): number {
    this.#count.fresh += 1;
    const body = view.head + serverTime(nowMs) + TAIL;
    res.writeHeader("Content-Type", view.freshHeaders);
    this.#echoRequestId(res, req);
    if (isHead) {
      res.writeHeader("Content-Length", String(Buffer.byteLength(body)));
      endBodiless(res, this.#deps.isDraining());
    } else res.end(body, this.#deps.isDraining());
    return ANSWERED;
  }

  #unchanged(res: HttpResponse, req: HttpRequest, view: Rendered): number {
    this.#count.unchanged += 1;
    res.writeStatus("304 Not Modified");
    res.writeHeader("ETag", view.unchangedHeaders);
    this.#echoRequestId(res, req);
    endBodiless(res, this.#deps.isDraining());
    return ANSWERED;
  }

  /** Polls are not logged one by one, so an id is only of use to a client that chose it. */
  #echoRequestId(res: HttpResponse, req: HttpRequest): void {
    const requestId = req.getHeader("x-request-id");
    if (requestId !== "" && isSaneRequestId(requestId)) res.writeHeader("X-Request-Id", requestId);
  }

  #refuseShut(res: HttpResponse, req: HttpRequest, shut: number, nowMs: number): number {
    const code = SHUT_CODES[shut] as ErrorCode;
    if (shut !== SHUT.throttled) return this.#refuse(res, req, code);
    const retryAfterMs = waitMs(CREDENTIAL_RATE, this.#deps.gate.throttledUntilFullAtMs, nowMs);
    return this.#refuse(res, req, code, { headers: throttleHeaders("credential", CREDENTIAL_RATE, retryAfterMs) });
  }

  #refuse(res: HttpResponse, req: HttpRequest, code: ErrorCode, facts?: RefusalFacts): number {
    const requestId = requestIdFrom(req.getHeader("x-request-id"));
    const isHead = req.getCaseSensitiveMethod() === "HEAD";
    writeAnswer(res, errorAnswer(code, requestId, facts), { isHead, close: this.#deps.isDraining() });
    this.#count.refuse(code);
    this.#deps.onRefused(this.#path, code, requestId);
    return ANSWERED;
  }
}
