/** The audit log of robotics and its webhooks: who did what, when and why. Two services write it, in one table. */
import type { JSONValue } from "postgres";
import type { RoboticsAuditEntry } from "../bus/messages/events.ts";
import { type EventPage, readEvents } from "./event-page.ts";
import type { Fragment, Queryable, Transaction } from "./pool.ts";

export interface RoboticsAction {
  readonly organizationId: number;
  readonly actor: RoboticsAuditEntry["actor"];
  readonly action: string;
  readonly subject: RoboticsAuditEntry["subject"];
  /** What has changed and why; never a secret or a credential (I9). A `url` is stored without its query. */
  readonly data?: Readonly<Record<string, JSONValue>>;
}

/** The actor of changes by the service. */
export const SYSTEM_ACTOR = { kind: "system", id: 0, name: "" } as const;

/**
 * Removes the query of `url`, where some targets need a token: entries stay for ever, and several people read them
 * (I9).
 */
function withoutQuery(data: Readonly<Record<string, JSONValue>>): Record<string, JSONValue> {
  const { url } = data;
  return typeof url === "string" ? { ...data, url: url.replace(/\?.*$/s, "") } : data;
}

/** Records an entry in the transaction of the change, so that neither is stored without the other. */
export async function recordRoboticsAction(sql: Transaction, entry: RoboticsAction): Promise<void> {
  const { organizationId, actor, action, subject } = entry;
  const data = withoutQuery(entry.data ?? {});
  await sql`
    insert into robotics_trail (organization_id, actor_kind, actor_id, actor_name, action, subject_kind, subject_id, data)
    values (${organizationId}, ${actor.kind}, ${actor.id}, ${actor.name}, ${action}, ${subject.kind}, ${subject.id},
      ${sql.json(data)})`;
}

interface EntryRow {
  readonly event_id: number;
  readonly at: Date;
  readonly actor_kind: RoboticsAuditEntry["actor"]["kind"];
  readonly actor_id: number;
  readonly actor_name: string;
  readonly action: string;
  readonly subject_kind: RoboticsAuditEntry["subject"]["kind"];
  readonly subject_id: number;
  readonly data: Record<string, unknown>;
}

/** A page of the organization's entries, newest first. */
export async function listRoboticsEvents(
  sql: Queryable,
  page: Omit<EventPage, "sinceId"> & { readonly organizationId: number },
) {
  const where = sql`organization_id = ${page.organizationId}`;
  const select = (rows: Fragment) => sql<EntryRow[]>`
    select event_id, at, actor_kind, actor_id, actor_name, action, subject_kind, subject_id, data ${rows}`;
  const log = { table: sql`robotics_trail`, where, select };
  const { rows, searchedThroughId } = await readEvents(sql, log, { ...page, sinceId: undefined });
  const entries = rows.map(
    (row): RoboticsAuditEntry => ({
      eventId: row.event_id,
      atMs: row.at.getTime(),
      actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name },
      action: row.action,
      subject: { kind: row.subject_kind, id: row.subject_id },
      data: row.data,
    }),
  );
  return { entries, searchedThroughId };
}
