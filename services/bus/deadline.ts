/**
 * A request carries its deadline: the moment after which its caller no longer waits. While a service is stalled, requests wait
 * in buffers. A service that handled them after the deadline would use up a code or open an order for a caller that already
 * has the answer "unavailable". Deadlines use the time of the bus (`bus-clock.ts`), so wrong clocks of machines do not matter.
 */
import { headers, type Msg, type MsgHdrs, type NatsConnection } from "nats";
import type { Registry } from "prom-client";
import { currentRequestId } from "../runtime/log.ts";
import { addReadCount } from "../runtime/metrics.ts";
import { clockOf } from "./bus-clock.ts";

const DEADLINE_HEADER = "Deadline-Ms";
const REQUEST_ID_HEADER = "Request-Id";

/** Headers of a message that is void after `timeoutMs`, with the id of the request for which it is sent. */
export function deadlineHeaders(nc: NatsConnection, timeoutMs: number): MsgHdrs {
  const made = headers();
  made.set(DEADLINE_HEADER, String(clockOf(nc).nowMs() + timeoutMs));
  const requestId = currentRequestId();
  if (requestId !== undefined) made.set(REQUEST_ID_HEADER, requestId);
  return made;
}

/** The id of the request for which a message was sent; undefined where there is none. */
export function requestIdOf(message: Pick<Msg, "headers">): string | undefined {
  return message.headers?.get(REQUEST_ID_HEADER) || undefined;
}

/** By how many milliseconds a request came too late; zero for one in time, and for one without a deadline. */
export function lateByMs(nc: NatsConnection, message: Pick<Msg, "headers">): number {
  const deadlineMs = message.headers?.get(DEADLINE_HEADER) ?? "";
  return deadlineMs === "" ? 0 : Math.max(0, clockOf(nc).latestMs() - Number(deadlineMs));
}

export interface LateLog {
  warn(fields: object, message: string): void;
}

/** Requests that were not done because they came late, by operation. */
const dropped = new WeakMap<NatsConnection, Map<string, number>>();

/** Lets the count of an operation that this process answers start at 0. */
export function countLate(nc: NatsConnection, operation: string): void {
  const counts = dropped.get(nc) ?? new Map<string, number>();
  dropped.set(nc, counts.set(operation, counts.get(operation) ?? 0));
}

/** Whether a request came too late and must not be done. If so it is counted, and logged within the bounds of the log. */
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

/** Shows what `dropLate` has counted on this connection. */
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
