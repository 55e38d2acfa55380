import type { Barrier, BarrierPosition } from "../bus/messages/caller.ts";
import type { OutboxRow } from "../db/outbox.ts";
import type { DeliveredRow } from "./sql/outbox-rows.ts";

/** Which replica shows the effect of which kind of row; null where none does. */
const REPLICA: Readonly<Record<OutboxRow["kind"], BarrierPosition | null>> = {
  station_command: "stationLogSequence",
  credential_put: "credentialsRevision",
  credential_delete: "credentialsRevision",
  session_put: "sessionsRevision",
  session_delete: "sessionsRevision",
  switch_set: "switchesRevision",
  // No replica shows it: the webhook signer reads it from its own stream.
  robotics_event: null,
};

/** How far each replica must have come to show these rows. */
export function barrierOf(rows: readonly DeliveredRow[]): Barrier {
  const barrier: Barrier = {};
  for (const { kind, sequence } of rows) {
    const replica = REPLICA[kind];
    if (sequence !== null && replica !== null) barrier[replica] = Math.max(barrier[replica] ?? 0, sequence);
  }
  return barrier;
}
