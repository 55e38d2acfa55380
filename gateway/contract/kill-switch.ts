/** Kill switches on the wire: what is frozen, by whom, since when and why (design §5). */
import { z } from "zod";
import { SWITCH_SUBJECTS } from "../../services/bus/messages/kill-switches.ts";
import { hasMoreAfter, pageAfterQuery } from "../http/page.ts";
import { idSchema, nameSchema, timestampSchema } from "../http/shared-schemas.ts";
import { actorSchema } from "./timeline.ts";

export const killSwitchSchema = z
  .object({
    switch_id: idSchema,
    subject: z.object({
      kind: z.enum(SWITCH_SUBJECTS).meta({ id: "SwitchSubjectKind" }),
      id: z
        .int()
        .min(0)
        .meta({ description: "0 for the platform.", examples: [42] }),
    }),
    frozen: z.boolean(),
    reason: z.string().meta({ description: "Of the last change.", examples: ["The terminal was stolen."] }),
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

export const killSwitchesSchema = z.object({
  kill_switches: z.array(killSwitchSchema).meta({ description: "Those that are on." }),
  has_more: hasMoreAfter,
});
export const killSwitchesQuerySchema = z.strictObject(pageAfterQuery);

const reason = nameSchema.meta({ description: "For the audit trail: one line of text." });

export const switchBodySchema = z
  .strictObject({ reason })
  .meta({ id: "ThrowSwitch", examples: [{ reason: "The terminal was stolen." }] });

/** The platform key is nobody's own, so whoever uses it says who they are. */
export const platformSwitchBodySchema = z
  .strictObject({ reason, by: nameSchema.meta({ description: "Who does it, for the audit trail." }) })
  .meta({ id: "ThrowPlatformSwitch", examples: [{ reason: "The acquirer is down.", by: "Night shift, Ana" }] });

/** Null when it was never thrown. */
export const platformSwitchSchema = z
  .object({ kill_switch: killSwitchSchema.nullable() })
  .meta({ id: "PlatformSwitch" });
