/** A kill switch for the wire. */
import type { z } from "zod";
import type { KillSwitch } from "../../services/bus/messages/kill-switches.ts";
import type { killSwitchSchema } from "../contract/kill-switch.ts";
import { actorJson, toTimestamp } from "../http/shared-schemas.ts";

export function killSwitchWire(killSwitch: KillSwitch): z.infer<typeof killSwitchSchema> {
  const { switchId, subject, isOn, reason, changedBy, changedAtMs } = killSwitch;
  return {
    switch_id: switchId,
    subject,
    frozen: isOn,
    reason,
    changed_by: actorJson(changedBy),
    changed_at: toTimestamp(changedAtMs),
  };
}
