/**
 * A request carries the moment after which its caller no longer waits. Requests lie in buffers while a service stands
 * still; carried out after that moment, they would spend a code or open an order for somebody who was told that nobody
 * answered. The machines of one installation keep their clocks together within a second, as their leases need too.
 */
import { headers, type Msg, type MsgHdrs } from "nats";

const DEADLINE_HEADER = "Deadline-Ms";

/** Headers of a request that is void from `deadlineMs` (Unix time) on. */
export function deadlineHeaders(deadlineMs: number): MsgHdrs {
  const made = headers();
  made.set(DEADLINE_HEADER, String(deadlineMs));
  return made;
}

/** Whether a request came too late; one without a deadline never does. */
export function isPastDeadline(message: Msg): boolean {
  const deadlineMs = message.headers?.get(DEADLINE_HEADER) ?? "";
  return deadlineMs !== "" && Date.now() > Number(deadlineMs);
}
