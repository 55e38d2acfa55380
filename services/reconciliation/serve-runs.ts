/** The operations of runs and matches, and how runs end when the service stops. */
import { setTimeout as delay } from "node:timers/promises";
import * as matchMessages from "../bus/messages/reconciliation-matches.ts";
import * as runMessages from "../bus/messages/reconciliation-runs.ts";
import { type ServeDeps, type Serving, serve } from "../bus/operation.ts";
import type { Repeated } from "../runtime/repeat.ts";
import type { ReconciliationDeps } from "./deps.ts";
import { RUN_LIMITS } from "./limits.ts";
import * as matches from "./matches.ts";
import * as runs from "./runs.ts";

export function serveRuns(responder: ServeDeps, deps: ReconciliationDeps): Serving[] {
  return [
    serve(responder, runMessages.startRun, (request) => runs.startRun(deps, request)),
    serve(responder, runMessages.getRun, (request) => runs.getRun(deps, request)),
    serve(responder, runMessages.listRuns, (request) => runs.listRuns(deps, request)),
    serve(responder, runMessages.compareRuns, (request) => runs.compareRuns(deps, request)),
    serve(responder, matchMessages.listMatches, (request) => matches.listMatches(deps, request)),
    serve(responder, matchMessages.listCandidates, (request) => matches.listCandidates(deps, request)),
    serve(responder, matchMessages.confirmMatch, (request) => matches.confirmMatch(deps, request)),
    serve(responder, matchMessages.rejectMatch, (request) => matches.rejectMatch(deps, request)),
  ];
}

/** Waits for the end of the work that was cancelled, and not for ever: what is cut off with its connection leaves nothing. */
export async function settleRuns(
  { underWay }: Pick<ReconciliationDeps, "underWay">,
  repeated: readonly Repeated[],
): Promise<void> {
  const waiting = new AbortController();
  const all = Promise.all([...repeated.map((work) => work.stop()), ...underWay]);
  const ended = all.then(() => waiting.abort());
  await Promise.race([ended, delay(RUN_LIMITS.stopMs, undefined, { signal: waiting.signal }).catch(() => undefined)]);
}
