/** The platform's kill switch, for whoever holds the platform key. */
import type { z } from "zod";
import { getKillSwitch, setPlatformKillSwitch } from "../../../services/bus/messages/kill-switches.ts";
import type { platformSwitchBodySchema } from "../../contract/kill-switch.ts";
import { type Handler, ok } from "../../http/handler-context.ts";
import { killSwitchWire } from "../kill-switch-wire.ts";

export const readPlatformSwitch: Handler = async ({ deps }) => {
  const { killSwitch } = await deps.bus.call(getKillSwitch, {});
  return ok({ kill_switch: killSwitch === null ? null : killSwitchWire(killSwitch) });
};

/** Freezing what is frozen changes nothing. */
export const throwPlatformSwitch =
  (isOn: boolean): Handler<z.infer<typeof platformSwitchBodySchema>> =>
  async ({ deps, body }) => {
    const { killSwitch } = await deps.bus.call(setPlatformKillSwitch, { ...body, isOn });
    return ok(killSwitchWire(killSwitch));
  };
