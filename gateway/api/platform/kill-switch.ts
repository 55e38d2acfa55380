/** The platform's kill switch, for the operator, who has the platform key. */
import { z } from "zod";
import * as messages from "../../../services/bus/messages/kill-switches.ts";
import { type Handler, ok } from "../../http/handler-context.ts";
import { platform, type Route, route } from "../../http/route.ts";
import { nameSchema } from "../../http/shared-schemas.ts";
import {
  IN_TIME,
  killSwitchJson,
  killSwitchReply,
  killSwitchSchema,
  switchReasonSchema,
} from "../backoffice/kill-switches.ts";

/** The platform key has no owner, so each user of it gives a name. */
const bodySchema = z
  .strictObject({
    reason: switchReasonSchema,
    by: nameSchema.meta({ description: "Who does it, for the audit log." }),
  })
  .meta({ id: "ThrowPlatformSwitch", examples: [{ reason: "The acquirer is down.", by: "Night shift, Ana" }] });

/** Null when it was never thrown. */
const platformSwitchSchema = z.object({ kill_switch: killSwitchSchema.nullable() }).meta({ id: "PlatformSwitch" });

const getKillSwitch: Handler = async ({ deps }) => {
  const { killSwitch } = await deps.bus.call(messages.getKillSwitch, {});
  return ok({ kill_switch: killSwitch === null ? null : killSwitchJson(killSwitch) });
};

/** Freezing what is frozen changes nothing. */
const setKillSwitch =
  (isOn: boolean): Handler<z.infer<typeof bodySchema>> =>
  async ({ deps, body }) => {
    const { killSwitch } = await deps.bus.call(messages.setPlatformKillSwitch, { ...body, isOn });
    return ok(killSwitchJson(killSwitch));
  };

export const platformKillSwitchRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/api/platform/v1/kill-switch/",
    operation: "getKillSwitch",
    tag: "platform",
    summary: "See whether the platform is frozen",
    description: "With who threw the switch last, when and why; null when it was never thrown.",
    who: platform,
    replies: { 200: { description: "The platform's kill switch.", schema: platformSwitchSchema } },
    errors: [],
    handler: getKillSwitch,
  }),
  route({
    method: "POST",
    path: "/api/platform/v1/freeze/",
    operation: "freezePlatform",
    tag: "platform",
    summary: "Freeze the platform",
    description: `Every route but cash is withdrawn at all stations of all organizations, and all devices are refused; cash collects on. ${IN_TIME}`,
    who: platform,
    body: bodySchema,
    replies: killSwitchReply,
    errors: [],
    awaitsEffect: true,
    handler: setKillSwitch(true),
  }),
  route({
    method: "POST",
    path: "/api/platform/v1/unfreeze/",
    operation: "unfreezePlatform",
    tag: "platform",
    summary: "Unfreeze the platform",
    description: "Restores what the freeze has withdrawn, unless another freeze or a suspension still holds.",
    who: platform,
    body: bodySchema,
    replies: killSwitchReply,
    errors: [],
    awaitsEffect: true,
    handler: setKillSwitch(false),
  }),
];
