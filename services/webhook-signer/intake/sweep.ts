/** Events that the bus has lost between the relay and here: the outbox still has them. And offers that expired while waiting. */
import { type PublishedRoboticsEvent, roboticsEventSchema } from "../../bus/messages/robotics-events.ts";
import type { SignerDeps } from "../deps.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import { insertUnreadableEvent, lapseOffers, listLostEvents } from "../sql/intake.ts";
import { takeEvents } from "./take-events.ts";

type SweepDeps = Pick<SignerDeps, "database" | "log" | "figures" | "wake">;

/** What is to be done now and then. Now and then it looks at everything that the outbox has, at first at once. */
export function createSweep(deps: SweepDeps): () => Promise<void> {
  let wholeAtMs = Number.NEGATIVE_INFINITY;
  return async () => {
    await lapseOffers(deps.database, SIGNER_LIMITS.lapsedPerSweep);
    const startedAtMs = performance.now();
    const isWhole = startedAtMs - wholeAtMs >= SIGNER_LIMITS.wholeSweepIntervalMs;
    const isDone = await sweepLostEvents(deps, isWhole ? undefined : SIGNER_LIMITS.sweepWindowMs);
    if (isWhole && isDone) wholeAtMs = startedAtMs;
  };
}

/** Whether there are no more. */
async function sweepLostEvents(deps: SweepDeps, withinMs: number | undefined): Promise<boolean> {
  const { lostAfterMs: olderThanMs, lostPerSweep: limit } = SIGNER_LIMITS;
  const rows = await listLostEvents(deps.database, { olderThanMs, withinMs, limit });
  const lost: PublishedRoboticsEvent[] = [];
  for (const { outbox_id: eventId, event } of rows) {
    const parsed = roboticsEventSchema.safeParse(event);
    if (parsed.success) lost.push({ eventId, event: parsed.data });
    else {
      deps.log.error({ err: parsed.error, eventId }, "an event of robotics is not of its shape and is left out");
      await insertUnreadableEvent(deps.database, eventId);
    }
  }
  for (let at = 0; at < lost.length; at += SIGNER_LIMITS.eventsPerBatch) {
    const taken = await takeEvents(deps.database, lost.slice(at, at + SIGNER_LIMITS.eventsPerBatch));
    if (taken.events === 0) continue;
    deps.log.warn({ events: taken.events }, "the bus has lost events of robotics; they were taken from the outbox");
    deps.figures.events.add({}, taken.events);
    deps.figures.deliveries.add({}, taken.deliveries);
    deps.wake(taken.organizationIds);
  }
  return rows.length < limit;
}
