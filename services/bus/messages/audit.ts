/** What the audit copy of the log can tell. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { defineOperation } from "../operation.ts";
import { actorSchema, callerSchema } from "./caller.ts";

const id = z.int().positive();

export const auditEventSchema = z.object({
  stationId: id,
  version: id,
  ordinal: z.int(),
  atMs: z.number(),
  type: z.string(),
  actor: actorSchema,
  intentId: id.nullable(),
  data: z.record(z.string(), z.unknown()),
});
export type AuditEvent = z.infer<typeof auditEventSchema>;

export const timelineEntrySchema = z.object({
  atMs: z.number(),
  type: z.string(),
  actor: actorSchema,
  /** One sentence that a person without the manual understands. */
  sentence: z.string(),
  /** Whether money moved by this step: `maybe` where only evidence says so. */
  moneyMoved: z.enum(["no", "yes", "maybe"]),
  data: z.record(z.string(), z.unknown()),
});

/** One payment from its creation to its end, in order; `not_found` outside the caller's organization. */
export const getTimeline = defineOperation(
  "audit.timeline",
  "repeatable",
  z.object({ caller: callerSchema, intentId: id }),
  z.object({
    intentId: id,
    stationId: id,
    status: z.string(),
    /** The whole payment in one sentence. */
    summary: z.string(),
    moneyMoved: z.enum(["no", "yes", "maybe"]),
    entries: z.array(timelineEntrySchema),
  }),
);

/** A station's events, newest last, by version; a page ends with a whole commit. */
export const listStationEvents = defineOperation(
  "audit.station-events",
  "repeatable",
  z.object({
    caller: callerSchema,
    stationId: id,
    sinceVersion: z.int().min(0),
    limit: z.int().min(1).max(BOUNDS.listed),
  }),
  z.object({ events: z.array(auditEventSchema), hasMore: z.boolean() }),
);
