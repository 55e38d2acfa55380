/** A kill switch for the wire. */
import type { z } from "zod";
import type { KillSwitch } from "../../services/bus/messages/kill-switches.ts";
import type { killSwitchSchema } from "../contract/kill-switch.ts";
import { toTimestamp } from "../http/shared-schemas.ts";
import { actorWire } from "./actor-wire.ts";

export function killSwitchWire(killSwitch: KillSwitch): z.infer<typeof killSwitchSchema> {
  const { switchId, subject, isOn, reason, changedBy, changedAtMs } = killSwitch;
  return {
    switch_id: switchId,
    subject,
    frozen: isOn,
    reason,
    changed_by: actorWire(changedBy),
    changed_at: toTimestamp(changedAtMs),
  };
}
