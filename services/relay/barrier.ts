import type { Barrier } from "../bus/messages/caller.ts";
import type { DeliveredRow } from "./sql/outbox-rows.ts";

/** How far each replica must have come to show these rows. */
export function barrierOf(rows: readonly DeliveredRow[]): Barrier {
  const positions: Record<string, number> = {};
  for (const { kind, stream, sequence } of rows) {
    // No replica shows an event: the webhook signer reads it from its own stream.
    if (kind === "robotics_event" || stream === null || sequence === null) continue;
    positions[stream] = Math.max(positions[stream] ?? 0, sequence);
  }
  return { positions };
}
