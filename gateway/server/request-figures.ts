/** What the server counts of requests that are not answered from memory; those are counted in `gateway/polls/`. */
import type { Registry } from "prom-client";
import { addCount, addDuration, type Count, type Duration } from "../../services/runtime/figures.ts";

/** Of a request that no route takes. */
export const NO_OPERATION = "none";
/** The code of an answer that is no refusal. */
const NO_CODE = "none";

export class RequestFigures {
  readonly #requests: Count<"operation" | "status" | "code">;
  readonly #seconds: Duration<"operation">;

  constructor(metrics: Registry | undefined) {
    this.#requests = addCount(metrics, {
      name: "gateway_requests_total",
      help: "Requests not answered from memory, by operation, status and the code of a refusal.",
      labels: ["operation", "status", "code"],
    });
    this.#seconds = addDuration(metrics, {
      name: "gateway_request_duration_seconds",
      help: "From a request's headers to its answer, without those answered from memory.",
      labels: ["operation"],
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
