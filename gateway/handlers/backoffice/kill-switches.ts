/** The owner's kill switches: a device, a station, a payment provider, the whole organization. */
import type { z } from "zod";
import {
  listKillSwitches,
  type SwitchSubjectKind,
  setKillSwitch,
} from "../../../services/bus/messages/kill-switches.ts";
import type { killSwitchesQuerySchema, switchBodySchema } from "../../contract/kill-switch.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { killSwitchWire } from "../kill-switch-wire.ts";

export const listSwitchesOn: SessionHandler<undefined, z.infer<typeof killSwitchesQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { since_id: sinceId, limit } = query;
  const { killSwitches, hasMore } = await deps.bus.call(listKillSwitches, { caller, sinceId, limit });
  return ok({ kill_switches: killSwitches.map(killSwitchWire), has_more: hasMore });
};

/** Freezing what is frozen changes nothing. Refusal: `not_found`. */
export const throwOwnSwitch =
  (kind: Exclude<SwitchSubjectKind, "platform">, isOn: boolean): SessionHandler<z.infer<typeof switchBodySchema>> =>
  async (context) => {
    const { caller, deps, body } = context;
    const subject =
      kind === "organization" ? { kind } : { kind, id: context.id(kind === "provider" ? "config_id" : `${kind}_id`) };
    const { killSwitch } = await deps.bus.call(setKillSwitch, { caller, subject, isOn, reason: body.reason });
    return ok(killSwitchWire(killSwitch));
  };
