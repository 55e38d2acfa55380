/** A heartbeat as the gateway stores it in LIVENESS, one message per device (subject: `heartbeatSubject`). */
import { z } from "zod";

/**
 * The host uses only the time at which a heartbeat arrives, never its content. So the wrong clock of a gateway cannot make
 * a device count as silent. The registry reads the newest heartbeat with this schema, to show its summary to the owner.
 */
export const heartbeatSchema = z.object({
  /** When the gateway received the heartbeat. */
  atMs: z.number(),
  /** The summary that the device sent, at most 4 KiB and 8 levels (design §4, "heartbeat"). */
  summary: z.record(z.string(), z.unknown()),
});
