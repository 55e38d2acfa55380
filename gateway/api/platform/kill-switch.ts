/** The platform's kill switch, for the operator, who has the platform key. */
import { z } from "zod";
import * as messages from "../../../services/bus/messages/kill-switches.ts";
import { type Handler, ok } from "../../http/handler-context.ts";
import { platform, route } from "../../http/route.ts";
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
    by: nameSchema.meta({ description: "The name of the person who changes the switch, for the audit log." }),
  })
  .meta({ id: "ThrowPlatformSwitch", examples: [{ reason: "The acquirer is down.", by: "Night shift, Ana" }] });

/** Null until the switch is changed for the first time. */
const platformSwitchSchema = z.object({ kill_switch: killSwitchSchema.nullable() }).meta({ id: "PlatformSwitch" });

const getKillSwitch: Handler = async ({ deps }) => {
  const { killSwitch } = await deps.bus.call(messages.getKillSwitch, {});
  return ok({ kill_switch: killSwitch === null ? null : killSwitchJson(killSwitch) });
};

/** Freezes or unfreezes the platform. A repetition changes nothing. */
const setKillSwitch =
  (isOn: boolean): Handler<z.infer<typeof bodySchema>> =>
  async ({ deps, body }) => {
    const { killSwitch } = await deps.bus.call(messages.setPlatformKillSwitch, { ...body, isOn });
    return ok(killSwitchJson(killSwitch));
  };

export const platformKillSwitchRoutes = [
  route({
    method: "GET",
    path: "/api/platform/v1/kill-switch/",
    operation: "getKillSwitch",
    tag: "platform",
    summary: "See whether the platform is frozen",
    description: "Includes who changed the switch last, when and why; null until it is changed for the first time.",
    who: platform,
    replies: { 200: { description: "The platform's kill switch.", schema: platformSwitchSchema } },
    handler: getKillSwitch,
  }),
  route({
    method: "POST",
    path: "/api/platform/v1/freeze/",
    operation: "freezePlatform",
    tag: "platform",
    summary: "Freeze the platform",
    description: `Withdraws every route except cash at all stations of all organizations, and refuses all devices; cash collections continue. ${IN_TIME}`,
    who: platform,
    body: bodySchema,
    replies: killSwitchReply,
    awaitsEffect: true,
    handler: setKillSwitch(true),
  }),
  route({
    method: "POST",
    path: "/api/platform/v1/unfreeze/",
    operation: "unfreezePlatform",
    tag: "platform",
    summary: "Unfreeze the platform",
    description: "Restores what the freeze withdrew, unless another freeze or a suspension is still in effect.",
    who: platform,
    body: bodySchema,
    replies: killSwitchReply,
    awaitsEffect: true,
    handler: setKillSwitch(false),
  }),
];
