/** Publishing what happened to serving tasks and robotics, for the webhook signer. */
import type { PublishedRoboticsEvent } from "../bus/messages/robotics-events.ts";
import { roboticsEventSubject } from "../bus/subjects.ts";
import type { OutboxRow } from "../db/outbox.ts";
import type { BucketDeps } from "./buckets.ts";
import { RELAY_LIMITS } from "./limits.ts";

type RoboticsRow = Extract<OutboxRow, { readonly kind: "robotics_event" }> & { readonly outboxId: number };

/**
 * Returns where the stream stores it. The row's id names the event: published twice, after a lost answer, it is stored
 * once by the server's memory of ids, and counted once by whoever writes it down. Throws when it is not known to be stored.
 */
export async function publishRoboticsEvent({ js }: Pick<BucketDeps, "js">, row: RoboticsRow): Promise<number> {
  const published: PublishedRoboticsEvent = { eventId: row.outboxId, event: row.event };
  const ack = await js.publish(roboticsEventSubject(row.event.filialId), JSON.stringify(published), {
    msgID: `outbox:${row.outboxId}`,
    timeout: RELAY_LIMITS.streamTimeoutMs,
  });
  return ack.seq;
}
