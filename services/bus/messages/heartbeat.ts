/** A heartbeat as the gateway stores it in LIVENESS, one message per device (subject: `heartbeatSubject`). */
import { headers, type MsgHdrs } from "nats";
import { z } from "zod";

const AT_HEADER = "Heartbeat-At-Ms";

/**
 * The host reads the headers of stored heartbeats only. They have the time of the bus at which the gateway received the heartbeat:
 * the server that stores it notes its own time, and its clock may be wrong.
 */
export function heartbeatHeaders({ atMs }: Pick<Heartbeat, "atMs">): MsgHdrs {
  const made = headers();
  made.set(AT_HEADER, String(atMs));
  return made;
}

/**
 * When the gateway received a stored heartbeat, by the time of the bus. The time of storing counts for a heartbeat without the
 * header.
 */
export function heartbeatAtMs(stored: { readonly headers?: MsgHdrs | undefined; readonly storedAtMs: number }): number {
  const atMs = stored.headers?.get(AT_HEADER) ?? "";
  return atMs === "" ? stored.storedAtMs : Number(atMs);
}

/**
 * The host uses only the time of a heartbeat, never its content. The registry reads the newest heartbeat with this schema, to show its summary to the owner.
 */
export const heartbeatSchema = z.object({
  /** When the gateway received the heartbeat, by the time of the bus. */
  atMs: z.number(),
  /** The summary that the device sent, at most 4 KiB and 8 levels (design §4, "heartbeat"). */
  summary: z.record(z.string(), z.unknown()),
});
type Heartbeat = z.infer<typeof heartbeatSchema>;
