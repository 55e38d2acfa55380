/** The owner's kill switches: of a device, a station, a payment provider, the whole organization. */
import { z } from "zod";
import * as messages from "../../../services/bus/messages/kill-switches.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import { actorJson, idSchema, nameSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { actorSchema } from "./events.ts";

export const killSwitchSchema = z
  .object({
    switch_id: idSchema,
    subject: z.object({
      kind: z.enum(messages.SWITCH_SUBJECTS).meta({ id: "SwitchSubjectKind" }),
      id: z
        .int()
        .min(0)
        .meta({ description: "0 for the platform.", examples: [42] }),
    }),
    frozen: z.boolean(),
    reason: z.string().meta({ description: "The reason of the last change.", examples: ["The terminal was stolen."] }),
    changed_by: actorSchema,
    changed_at: timestampSchema,
  })
  .meta({
    id: "KillSwitch",
    examples: [
      {
        switch_id: 7,
        subject: { kind: "station", id: 1 },
        frozen: true,
        reason: "The terminal was stolen.",
        changed_by: { kind: "owner", id: 30, name: "Ana" },
        changed_at: "2026-11-20T12:00:00.000Z",
      },
    ],
  });

const killSwitchesSchema = z.object({
  kill_switches: z.array(killSwitchSchema).meta({ description: "The kill switches that are on." }),
  has_more: hasMoreAfter,
});
const querySchema = z.strictObject(pageAfterQuery);

export const switchReasonSchema = nameSchema.meta({ description: "For the audit log: one line of text." });

const bodySchema = z
  .strictObject({ reason: switchReasonSchema })
  .meta({ id: "ThrowSwitch", examples: [{ reason: "The terminal was stolen." }] });

export const killSwitchJson = (killSwitch: messages.KillSwitch): z.infer<typeof killSwitchSchema> => ({
  switch_id: killSwitch.switchId,
  subject: killSwitch.subject,
  frozen: killSwitch.isOn,
  reason: killSwitch.reason,
  changed_by: actorJson(killSwitch.changedBy),
  changed_at: toTimestamp(killSwitch.changedAtMs),
});

const listKillSwitches: SessionHandler<undefined, z.infer<typeof querySchema>> = async ({ caller, deps, query }) => {
  const { since_id: sinceId, limit } = query;
  const { killSwitches, hasMore } = await deps.bus.call(messages.listKillSwitches, { caller, sinceId, limit });
  return ok({ kill_switches: killSwitches.map(killSwitchJson), has_more: hasMore });
};

/** Freezes or unfreezes. A repetition changes nothing. */
const setKillSwitch =
  (kind: Exclude<messages.SwitchSubjectKind, "platform">, isOn: boolean): SessionHandler<z.infer<typeof bodySchema>> =>
  async ({ caller, deps, body, id }) => {
    const subject =
      kind === "organization" ? { kind } : { kind, id: id(kind === "provider" ? "config_id" : `${kind}_id`) };
    const request = { caller, subject, isOn, reason: body.reason };
    const { killSwitch } = await deps.bus.call(messages.setKillSwitch, request);
    return ok(killSwitchJson(killSwitch));
  };

export const killSwitchReply = { 200: { description: "The kill switch after the change.", schema: killSwitchSchema } };

/** The kinds of switches and their effects. */
const SUBJECTS = [
  {
    kind: "organization",
    name: "Organization",
    path: "/api/backoffice/v1/organization",
    what: "the whole organization",
    effect: "All its stations withdraw every route except cash, and its devices are refused.",
  },
  {
    kind: "station",
    name: "Station",
    path: "/api/backoffice/v1/stations/{station_id}",
    what: "a station",
    effect: "The station withdraws every route except cash, and its devices are refused.",
  },
  {
    kind: "device",
    name: "Device",
    path: "/api/backoffice/v1/devices/{device_id}",
    what: "a device",
    effect: "The device is refused, and its station withdraws the routes that no other device can serve.",
  },
  {
    kind: "provider",
    name: "Provider",
    path: "/api/backoffice/v1/provider-configs/{config_id}",
    what: "a payment provider",
    effect:
      "Its stations withdraw the route `dynamic_qr`, and no device shows a QR of this provider. A payment that arrives still counts.",
  },
] as const;

export const IN_TIME =
  "After the answer 200, the freeze applies at every gateway and host within 1.5 s, also to a collection under way. After the answer 202, it applies there once the change is effective.";

const freezeRoutes = SUBJECTS.flatMap(({ kind, name, path, what, effect }) =>
  (["freeze", "unfreeze"] as const).map((verb) =>
    backofficeRoute({
      method: "POST",
      path: `${path}/${verb}/`,
      operation: `${verb}${name}`,
      summary: verb === "freeze" ? `Freeze ${what}` : `Unfreeze ${what}`,
      description:
        verb === "freeze"
          ? `${effect} ${IN_TIME} If it is already frozen, it stays frozen and keeps its reason.`
          : "Restores what the freeze withdrew, unless another freeze or a suspension is still in effect.",
      body: bodySchema,
      replies: killSwitchReply,
      errors: kind === "organization" ? [] : ["not_found"],
      awaitsEffect: true,
      handler: setKillSwitch(kind, verb === "freeze"),
    }),
  ),
);

export const killSwitchRoutes = [
  ...freezeRoutes,
  backofficeRoute({
    method: "GET",
    path: "/api/backoffice/v1/kill-switches/",
    operation: "listKillSwitches",
    summary: "List what is frozen",
    description: "The organization's kill switches that are on, and the platform's kill switch if it is on.",
    query: querySchema,
    replies: { 200: { description: "By id.", schema: killSwitchesSchema } },
    handler: listKillSwitches,
  }),
];
