/**
 * Kill switches: what is frozen, by whom and why. A request for the state that the switch already has changes nothing
 * and returns the switch. So a repetition adds no second entry to the audit log.
 */
import { z } from "zod";
import { once, repeatable } from "../operation.ts";
import { pageAfter } from "../page.ts";
import { actorSchema, barrierSchema, callerSchema as caller } from "./caller.ts";
import { nameSchema } from "./name.ts";

const id = z.int().positive();

export const SWITCH_SUBJECTS = ["platform", "organization", "station", "device", "provider"] as const;
export type SwitchSubjectKind = (typeof SWITCH_SUBJECTS)[number];

/** Why a person has changed a switch, in one line. */
export const switchReasonSchema = nameSchema;

export const killSwitchSchema = z.object({
  switchId: id,
  /** The id is 0 for the platform. */
  subject: z.object({ kind: z.enum(SWITCH_SUBJECTS), id: z.int().min(0) }),
  isOn: z.boolean(),
  reason: z.string(),
  changedBy: actorSchema,
  changedAtMs: z.number(),
});
export type KillSwitch = z.infer<typeof killSwitchSchema>;

const switchReply = z.object({ killSwitch: killSwitchSchema, barrier: barrierSchema });
const isOn = z.boolean();

/**
 * The switch of the caller's organization, or of one of its stations, devices or provider configs. Needs
 * `organization.manage`.
 */
export const setKillSwitch = once(
  "registry.setKillSwitch",
  z.object({
    caller,
    subject: z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("organization") }),
      z.object({ kind: z.literal("station"), id }),
      z.object({ kind: z.literal("device"), id }),
      z.object({ kind: z.literal("provider"), id }),
    ]),
    isOn,
    reason: switchReasonSchema,
  }),
  switchReply,
);

/**
 * The switch of the whole platform. The gateway has checked the platform key; `by` is the name of the person who used
 * it.
 */
export const setPlatformKillSwitch = once(
  "registry.setPlatformKillSwitch",
  z.object({ by: nameSchema, isOn, reason: switchReasonSchema }),
  switchReply,
);

/**
 * The switches of the caller's organization that are on, and the platform's when it is on, by id. Needs
 * `organization.manage`.
 */
export const listKillSwitches = repeatable(
  "registry.listKillSwitches",
  z.object({ caller, ...pageAfter }),
  z.object({ killSwitches: z.array(killSwitchSchema), hasMore: z.boolean() }),
);

/** The platform's switch; null when it was never on. */
export const getKillSwitch = repeatable(
  "registry.getKillSwitch",
  z.object({}),
  z.object({ killSwitch: killSwitchSchema.nullable() }),
);

/** An entry of the SWITCHES bucket, in the outbox and the announcements. `key` is `switchKeyOf` its subject. */
export const switchEntrySchema = z.object({
  key: z.string().regex(/^(?:platform|(?:organization|station|device|provider)\.[1-9]\d*)$/),
  isOn: z.boolean(),
  /** Of two entries with the same key, the one with the higher revision counts, in any order of arrival. */
  revision: z.int().positive(),
});
export type SwitchEntry = z.infer<typeof switchEntrySchema>;

/** The bucket's key: `platform`, `organization.<id>`, `station.<id>`, `device.<id>`, `provider.<configId>`. */
export function switchKeyOf(subject: KillSwitch["subject"]): string {
  return subject.kind === "platform" ? "platform" : `${subject.kind}.${subject.id}`;
}
