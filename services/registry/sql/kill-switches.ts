import type { SwitchSubjectKind } from "../../bus/messages/kill-switches.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";
import type { RegistryActor } from "./events.ts";

export interface KillSwitchRow {
  readonly switch_id: number;
  readonly subject_kind: SwitchSubjectKind;
  readonly subject_id: number;
  readonly organization_id: number | null;
  readonly is_on: boolean;
  readonly reason: string;
  readonly changed_by_kind: RegistryActor["kind"];
  readonly changed_by_id: number;
  readonly changed_by_name: string;
  readonly changed_at: Date;
  readonly revision: number;
}

export interface SwitchChange {
  readonly kind: SwitchSubjectKind;
  readonly id: number;
  readonly organizationId: number | null;
  readonly isOn: boolean;
  readonly reason: string;
  readonly actor: RegistryActor;
}

/**
 * Turns the switch on or off. Its row is locked until the transaction ends, so that revisions grow in the order of the
 * commits. Returns the row as it is now, and whether this has changed it. A switch that was never on counts as off: turning
 * it off stores nothing, and returns a row of this request.
 */
export async function setKillSwitch(
  sql: Transaction,
  change: SwitchChange,
): Promise<{ readonly row: KillSwitchRow; readonly isChanged: boolean }> {
  const { kind, id, organizationId, isOn, reason, actor } = change;
  // Inserted as off and then updated, so that the first change is the same case as any later one.
  const inserted = await sql`
    insert into kill_switches (subject_kind, subject_id, organization_id, is_on, reason,
      changed_by_kind, changed_by_id, changed_by_name, revision)
    values (${kind}, ${id}, ${organizationId}, false, ${reason}, ${actor.kind}, ${actor.id}, ${actor.name},
      (extract(epoch from clock_timestamp()) * 1000)::bigint)
    on conflict (subject_kind, subject_id) do nothing`;
  const [changed] = await sql<KillSwitchRow[]>`
    update kill_switches set is_on = ${isOn}, reason = ${reason}, changed_by_kind = ${actor.kind},
      changed_by_id = ${actor.id}, changed_by_name = ${actor.name}, changed_at = clock_timestamp(),
      revision = greatest(revision + 1, (extract(epoch from clock_timestamp()) * 1000)::bigint)
    where subject_kind = ${kind} and subject_id = ${id} and is_on <> ${isOn} returning *`;
  if (changed !== undefined) return { row: changed, isChanged: true };
  const known = sql`kill_switches where subject_kind = ${kind} and subject_id = ${id}`;
  const [row] = await (inserted.count === 1
    ? sql<[KillSwitchRow]>`delete from ${known} returning *`
    : sql<[KillSwitchRow]>`select * from ${known}`);
  return { row, isChanged: false };
}

/** Whether the subject itself is frozen. A freeze of its organization or of the platform does not count. */
export async function isFrozen(sql: Transaction, { kind, id }: Pick<SwitchChange, "kind" | "id">): Promise<boolean> {
  const rows = await sql`
    select 1 from kill_switches where subject_kind = ${kind} and subject_id = ${id} and is_on`;
  return rows.length > 0;
}

/** The switches that are on, of the organization and of the platform, after this id, by id. */
export async function listKillSwitches(
  sql: Queryable,
  page: { readonly organizationId: number; readonly sinceId: number; readonly limit: number },
): Promise<KillSwitchRow[]> {
  return sql<KillSwitchRow[]>`
    select * from kill_switches
    where is_on and (organization_id = ${page.organizationId} or organization_id is null)
      and switch_id > ${page.sinceId}
    order by switch_id limit ${page.limit}`;
}

/** The switch of the platform. */
export async function getKillSwitch(sql: Queryable): Promise<KillSwitchRow | undefined> {
  const [row] = await sql<KillSwitchRow[]>`select * from kill_switches where subject_kind = 'platform'`;
  return row;
}

/** All switches, on or off, of all organizations, after this id, by id. */
export async function announceSwitches(
  sql: Queryable,
  { sinceId, limit }: { readonly sinceId: number; readonly limit: number },
): Promise<KillSwitchRow[]> {
  return sql<
    KillSwitchRow[]
  >`select * from kill_switches where switch_id > ${sinceId} order by switch_id limit ${limit}`;
}

/** The id of a provider config of the organization, locked until the transaction ends. The providers service owns the table. */
export async function lockProviderConfig(
  sql: Transaction,
  organizationId: number,
  configId: number,
): Promise<number | undefined> {
  const [row] = await sql<{ config_id: number }[]>`
    select config_id from provider_configs
    where organization_id = ${organizationId} and config_id = ${configId} for key share`;
  return row?.config_id;
}
