/** A heartbeat as the gateway stores it in LIVENESS, one message per device (subject: `heartbeatSubject`). */
import { z } from "zod";

/**
 * The host takes only the fact and the moment of its arrival from a heartbeat, never its content, so that a gateway's
 * clock cannot make a device silent. Who shows the summary to a person reads it back with this schema.
 */
export const heartbeatSchema = z.object({
  /** When the gateway took it. */
  atMs: z.number(),
  /** The summary that the device sent, at most 4 KiB and 8 levels (design §4, "heartbeat"). */
  summary: z.record(z.string(), z.unknown()),
});
export type Heartbeat = z.infer<typeof heartbeatSchema>;
