/** What the server counts of requests that are not answered from memory; those are counted in `gateway/read-model/polls/`. */
import type { Registry } from "prom-client";
import { addCount, addDuration, type Count, type Duration } from "../../services/runtime/figures.ts";
import { ERRORS, type ErrorCode } from "./errors.ts";
import type { Route } from "./route.ts";

/** Of a request that no route takes. */
export const NO_OPERATION = "none";
/** The code of an answer that is no refusal. */
const NO_CODE = "none";
const FAULTS: readonly ErrorCode[] = ["busy", "unavailable", "replica_stale", "internal_error"];

/** The answers that a row declares, and those of faults. */
function seriesOf({ operationId: operation, replies, errors }: Route) {
  const good = Object.keys(replies).map((status) => ({ operation, status, code: NO_CODE }));
  const codes = [...new Set([...errors, ...FAULTS])];
  return [...good, ...codes.map((code) => ({ operation, status: String(ERRORS[code].status), code }))];
}

export class RequestFigures {
  readonly #requests: Count<"operation" | "status" | "code">;
  readonly #seconds: Duration<"operation">;

  constructor(metrics: Registry | undefined, routes: readonly Route[] = []) {
    this.#requests = addCount(metrics, {
      name: "gateway_requests_total",
      help: "Requests not answered from memory, by operation, status and the code of a refusal.",
      labels: { operation: [], status: [], code: [] },
      series: routes.flatMap(seriesOf),
    });
    this.#seconds = addDuration(metrics, {
      name: "gateway_request_duration_seconds",
      help: "From a request's headers to its answer, without those answered from memory.",
      // Those of operations that were never asked for would only make the answer to a scrape longer.
      labels: { operation: [] },
    });
  }

  /** A request is over; `status` 0 when the client went away before. */
  done(operation: string, status: number, code: string | undefined, durationMs: number): void {
    this.refused(operation, status, code);
    this.#seconds.observe({ operation }, durationMs / 1_000);
  }

  /** A request was answered at once, before any work for it began. */
  refused(operation: string, status: number, code: string | undefined): void {
    this.#requests.add({ operation, status: status === 0 ? "client_gone" : String(status), code: code ?? NO_CODE });
  }
}
