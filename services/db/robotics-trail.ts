/** The trail of robotics and its webhooks: who did what, when and why. One table, written by the two services that act. */
import type { JSONValue } from "postgres";
import type { Transaction } from "./pool.ts";

export interface RoboticsTrailEntry {
  readonly organizationId: number;
  /** A person by the role, a consumer, or the system itself. */
  readonly actor: { readonly kind: string; readonly id: number; readonly name: string };
  readonly action: string;
  readonly subject: {
    readonly kind: "robotics_consumer" | "serving_task" | "filial_robotics" | "webhook_endpoint";
    readonly id: number;
  };
  /** What changed and why; never a secret or a credential (I9). A `url` is kept without its query. */
  readonly data?: Readonly<Record<string, JSONValue>>;
}

/** What nobody but the service itself has done. */
export const SYSTEM_ACTOR = { kind: "system", id: 0, name: "" } as const;

/** A person, as the trail names them. */
export const personActor = (person: {
  readonly role: string;
  readonly userId: number;
  readonly name: string;
}): RoboticsTrailEntry["actor"] => ({ kind: person.role, id: person.userId, name: person.name });

/** A `url` without its query, in which some targets want a token: the entry is kept for ever and read by several people (I9). */
function withoutQuery(data: Readonly<Record<string, JSONValue>>): Record<string, JSONValue> {
  const { url } = data;
  return typeof url === "string" ? { ...data, url: url.replace(/\?.*$/s, "") } : data;
}

/** Written in the transaction of the change itself, so that neither is without the other. */
export async function recordRoboticsTrail(sql: Transaction, entry: RoboticsTrailEntry): Promise<void> {
  const { organizationId, actor, action, subject } = entry;
  const data = withoutQuery(entry.data ?? {});
  await sql`
    insert into robotics_trail (organization_id, actor_kind, actor_id, actor_name, action, subject_kind, subject_id, data)
    values (${organizationId}, ${actor.kind}, ${actor.id}, ${actor.name}, ${action}, ${subject.kind}, ${subject.id},
      ${sql.json(data)})`;
}
