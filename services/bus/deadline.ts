/**
 * A request carries its deadline: the time after which its caller no longer waits. While a service is stalled, requests wait
 * in buffers. By their deadline their callers have the answer "unavailable". A service that handled such a request later
 * could spend an enrollment code or open an order for a caller that no longer waits. Deadlines use the time of the bus
 * (`bus-clock.ts`), so a wrong clock of a machine does not matter.
 */
import { headers, type Msg, type MsgHdrs, type NatsConnection } from "nats";
import type { Registry } from "prom-client";
import { currentRequestId } from "../runtime/log.ts";
import { addReadCount } from "../runtime/metrics.ts";
import { clockOf } from "./bus-clock.ts";

const DEADLINE_HEADER = "Deadline-Ms";
const REQUEST_ID_HEADER = "Request-Id";

/** Headers for a message whose deadline is `timeoutMs` from now. They carry the id of the current request. */
export function deadlineHeaders(nc: NatsConnection, timeoutMs: number): MsgHdrs {
  const made = requestHeaders();
  made.set(DEADLINE_HEADER, String(clockOf(nc).nowMs() + timeoutMs));
  return made;
}

/** Headers for a message without a deadline. They carry the id of the current request. */
export function requestHeaders(): MsgHdrs {
  const made = headers();
  const requestId = currentRequestId();
  if (requestId !== undefined) made.set(REQUEST_ID_HEADER, requestId);
  return made;
}

/** The id of the request for which the sender sent this message; undefined where the message has none. */
export function requestIdOf(message: { readonly headers?: MsgHdrs | undefined }): string | undefined {
  return message.headers?.get(REQUEST_ID_HEADER) || undefined;
}

/** How many milliseconds have passed since the deadline of a request; 0 before the deadline, and without one. */
export function lateByMs(nc: NatsConnection, message: Pick<Msg, "headers">): number {
  const deadlineMs = message.headers?.get(DEADLINE_HEADER) ?? "";
  return deadlineMs === "" ? 0 : Math.max(0, clockOf(nc).latestMs() - Number(deadlineMs));
}

export interface LateLog {
  warn(fields: object, message: string): void;
}

/** The number of late requests that this process has dropped, by operation. */
const dropped = new WeakMap<NatsConnection, Map<string, number>>();

/** Starts the count of an operation at 0, so that the metric has the operation before its first late request. */
export function startLateCount(nc: NatsConnection, operation: string): void {
  const counts = dropped.get(nc) ?? new Map<string, number>();
  dropped.set(nc, counts.set(operation, counts.get(operation) ?? 0));
}

/** Returns true when a request is past its deadline; the caller must not handle it. Counts and logs such a request. */
export function dropLate(
  deps: { readonly nc: NatsConnection; readonly log: LateLog },
  message: Pick<Msg, "headers">,
  operation: string,
): boolean {
  const { nc, log } = deps;
  const lateMs = lateByMs(nc, message);
  if (lateMs === 0) return false;
  const counts = dropped.get(nc) ?? new Map<string, number>();
  dropped.set(nc, counts.set(operation, (counts.get(operation) ?? 0) + 1));
  log.warn({ operation, lateMs }, "a request came after its deadline and was dropped");
  return true;
}

/** Adds the metric of the requests that `dropLate` has counted on this connection. */
export function addLateCount(metrics: Registry | undefined, nc: NatsConnection): void {
  addReadCount(
    metrics,
    {
      name: "bus_requests_late_total",
      help: "Requests that were dropped because they came after their deadline, by operation.",
      labels: ["operation"],
    },
    () => [...(dropped.get(nc) ?? [])].map(([operation, count]) => [{ operation }, count] as const),
  );
}
