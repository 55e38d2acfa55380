/** The rows of the kill switches, of the owner and of the platform (design §5). `gateway/routes.ts` joins them into the one table. */
import {
  killSwitchesQuerySchema,
  killSwitchesSchema,
  killSwitchSchema,
  platformSwitchBodySchema,
  platformSwitchSchema,
  switchBodySchema,
} from "./contract/kill-switch.ts";
import { listSwitchesOn, throwOwnSwitch } from "./handlers/backoffice/kill-switches.ts";
import { readPlatformSwitch, throwPlatformSwitch } from "./handlers/platform/kill-switch.ts";
import { platform, type Route, route, session } from "./http/route.ts";

const backoffice = "/api/backoffice/v1";
const platformRoot = "/api/platform/v1";
const switchReply = { 200: { description: "The kill switch after this.", schema: killSwitchSchema } };

/** What each kind's switch withdraws. */
const SUBJECTS = [
  {
    kind: "organization",
    name: "Organization",
    path: `${backoffice}/organization`,
    what: "the whole organization",
    effect: "Every route but cash is withdrawn at all of its stations, and its devices are refused.",
  },
  {
    kind: "station",
    name: "Station",
    path: `${backoffice}/stations/{station_id}`,
    what: "a station",
    effect: "Every route but cash is withdrawn there, and its devices are refused.",
  },
  {
    kind: "device",
    name: "Device",
    path: `${backoffice}/devices/{device_id}`,
    what: "a device",
    effect: "It is refused, and routes that need it are withdrawn when no other device can serve them.",
  },
  {
    kind: "provider",
    name: "Provider",
    path: `${backoffice}/provider-configs/{config_id}`,
    what: "a payment provider",
    effect:
      "The route `dynamic_qr` is withdrawn at its stations, and no QR of it is shown; money that comes still counts.",
  },
] as const;

const IN_TIME =
  "Answered 200, it holds at every gateway and host within 1.5 s, also in a collection that is under way; answered 202, it does so once it is effective.";

const ownSwitchRoutes = SUBJECTS.flatMap(({ kind, name, path, what, effect }) =>
  (["freeze", "unfreeze"] as const).map((verb) =>
    route({
      method: "POST",
      path: `${path}/${verb}/`,
      operation: `${verb}${name}`,
      tag: "backoffice",
      summary: verb === "freeze" ? `Freeze ${what}` : `Unfreeze ${what}`,
      description:
        verb === "freeze"
          ? `${effect} ${IN_TIME} What is frozen already stays so, with the reason that it has.`
          : "Restores what the freeze has withdrawn, unless another freeze or a suspension still holds.",
      who: session("organization.manage"),
      body: switchBodySchema,
      replies: switchReply,
      errors: kind === "organization" ? [] : ["not_found"],
      awaitsEffect: true,
      handler: throwOwnSwitch(kind, verb === "freeze"),
    }),
  ),
);

export const killSwitchRoutes: readonly Route[] = [
  ...ownSwitchRoutes,
  route({
    method: "GET",
    path: `${backoffice}/kill-switches/`,
    operation: "listKillSwitches",
    tag: "backoffice",
    summary: "List what is frozen",
    description: "The organization's own kill switches that are on, and the platform's when it is.",
    who: session("organization.manage"),
    query: killSwitchesQuerySchema,
    replies: { 200: { description: "By id.", schema: killSwitchesSchema } },
    errors: [],
    handler: listSwitchesOn,
  }),
  route({
    method: "GET",
    path: `${platformRoot}/kill-switch/`,
    operation: "getKillSwitch",
    tag: "platform",
    summary: "See whether the platform is frozen",
    description: "With who threw the switch last, when and why; null when nobody ever has.",
    who: platform,
    replies: { 200: { description: "The platform's kill switch.", schema: platformSwitchSchema } },
    errors: [],
    handler: readPlatformSwitch,
  }),
  route({
    method: "POST",
    path: `${platformRoot}/freeze/`,
    operation: "freezePlatform",
    tag: "platform",
    summary: "Freeze the platform",
    description: `Every route but cash is withdrawn at all stations of all organizations, and all devices are refused; cash collects on. ${IN_TIME}`,
    who: platform,
    body: platformSwitchBodySchema,
    replies: switchReply,
    errors: [],
    awaitsEffect: true,
    handler: throwPlatformSwitch(true),
  }),
  route({
    method: "POST",
    path: `${platformRoot}/unfreeze/`,
    operation: "unfreezePlatform",
    tag: "platform",
    summary: "Unfreeze the platform",
    description: "Restores what the freeze has withdrawn, unless another freeze or a suspension still holds.",
    who: platform,
    body: platformSwitchBodySchema,
    replies: switchReply,
    errors: [],
    awaitsEffect: true,
    handler: throwPlatformSwitch(false),
  }),
];
