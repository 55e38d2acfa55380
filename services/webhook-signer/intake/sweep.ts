/** Events that the bus has lost between the relay and here: the outbox still has them. */
import { roboticsEventSchema } from "../../bus/messages/robotics-events.ts";
import type { SignerDeps } from "../deps.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import { listLostEvents } from "../sql/intake.ts";
import { takeEvents } from "./take-events.ts";

export async function sweepLostEvents(deps: Pick<SignerDeps, "database" | "log" | "figures" | "wake">): Promise<void> {
  const { lostAfterMs: olderThanMs, lostPerSweep: limit } = SIGNER_LIMITS;
  const rows = await listLostEvents(deps.database, { olderThanMs, limit });
  if (rows.length === 0) return;
  const lost = rows.map((row) => ({ eventId: row.outbox_id, event: roboticsEventSchema.parse(row.event) }));
  const taken = await takeEvents(deps.database, lost);
  if (taken.events === 0) return;
  deps.log.warn({ events: taken.events }, "the bus has lost events of robotics; they were taken from the outbox");
  deps.figures.events.add({}, taken.events);
  deps.figures.deliveries.add({}, taken.deliveries);
  deps.wake(taken.organizationIds);
}
