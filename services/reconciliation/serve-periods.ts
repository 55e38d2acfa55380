/** The operations of periods, closings and the report of a day. */
import * as messages from "../bus/messages/reconciliation-periods.ts";
import { type ServeDeps, type Serving, serve } from "../bus/operation.ts";
import * as closings from "./closings.ts";
import { reportDay } from "./day-close.ts";
import { listPeriods } from "./periods.ts";

export function servePeriods(responder: ServeDeps, deps: closings.ClosingDeps): Serving[] {
  return [
    serve(responder, messages.listPeriods, (request) => listPeriods(deps, request)),
    serve(responder, messages.closePeriod, (request) => closings.closePeriod(deps, request)),
    serve(responder, messages.getClosing, (request) => closings.getClosing(deps, request)),
    serve(responder, messages.listClosings, (request) => closings.listClosings(deps, request)),
    serve(responder, messages.listClosingItems, (request) => closings.listClosingItems(deps, request)),
    serve(responder, messages.listClosingKeys, (request) => closings.listClosingKeys(deps, request)),
    serve(responder, messages.reportDay, (request) => reportDay(deps, request)),
  ];
}
