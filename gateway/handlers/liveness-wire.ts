/** A device's presence for the wire, as its station committed it. */
import type { z } from "zod";
import type { StationDevice } from "../../machines/station/state.ts";
import { type livenessSchema, optionalTimestamp } from "../http/shared-schemas.ts";

export function livenessWire({
  state,
  lastSeenAtMs,
  sinceMs,
}: StationDevice["liveness"]): z.infer<typeof livenessSchema> {
  return {
    online: state === "online",
    last_seen_at: optionalTimestamp(lastSeenAtMs),
    since: optionalTimestamp(sinceMs),
  };
}
