/** Whether robotics is paused at a filial. Each operation is limited to one organization. */
import type { Queryable, Transaction } from "../../db/pool.ts";

export interface FilialRow {
  readonly filial_id: number;
  readonly is_paused: boolean;
  readonly reason: string | null;
  readonly changed_at: Date | null;
  readonly changed_by_name: string | null;
}

interface FilialKey {
  readonly organizationId: number;
  readonly filialId: number;
}

/** A filial without a row is not paused; undefined when the organization has no such filial. */
export async function getFilialRobotics(sql: Queryable, key: FilialKey): Promise<FilialRow | undefined> {
  const [row] = await sql<FilialRow[]>`
    select f.filial_id, coalesce(r.is_paused, false) as is_paused, r.reason, r.changed_at, r.changed_by_name
    from filials f left join robotics_filials r on r.filial_id = f.filial_id
    where f.organization_id = ${key.organizationId} and f.filial_id = ${key.filialId}`;
  return row;
}

/**
 * The filial, locked for a pause or an offer until the transaction ends. Makes its row where there is none; undefined when
 * the organization has no such filial.
 */
export async function lockFilial(sql: Transaction, key: FilialKey): Promise<FilialRow | undefined> {
  await sql`
    insert into robotics_filials (filial_id, organization_id)
    select filial_id, organization_id from filials
    where organization_id = ${key.organizationId} and filial_id = ${key.filialId}
    on conflict (filial_id) do nothing`;
  const [row] = await sql<FilialRow[]>`
    select filial_id, is_paused, reason, changed_at, changed_by_name from robotics_filials
    where organization_id = ${key.organizationId} and filial_id = ${key.filialId} for update`;
  return row;
}

/**
 * Whether the filial is paused. Locks its row for share until the transaction ends, so that acceptances can run
 * concurrently.
 */
export async function holdFilial(sql: Transaction, key: FilialKey): Promise<{ readonly isPaused: boolean }> {
  const [row] = await sql<{ is_paused: boolean }[]>`
    select is_paused from robotics_filials
    where organization_id = ${key.organizationId} and filial_id = ${key.filialId} for share`;
  return { isPaused: row?.is_paused ?? false };
}

export async function setPaused(
  sql: Transaction,
  filialId: number,
  change: {
    readonly isPaused: boolean;
    readonly reason: string;
    readonly byId: number;
    readonly byName: string;
  },
): Promise<FilialRow> {
  const [row] = await sql<[FilialRow]>`
    update robotics_filials
    set is_paused = ${change.isPaused}, reason = ${change.reason}, changed_at = clock_timestamp(),
      changed_by_id = ${change.byId}, changed_by_name = ${change.byName}
    where filial_id = ${filialId}
    returning filial_id, is_paused, reason, changed_at, changed_by_name`;
  return row;
}

/** The filial's next display number. The numbers have no gaps, because a rolled-back transaction returns its number. */
export async function takeDisplayNumber(sql: Transaction, filialId: number): Promise<number> {
  const [row] = await sql<[{ last_display_number: number }]>`
    update robotics_filials set last_display_number = last_display_number + 1
    where filial_id = ${filialId} returning last_display_number`;
  return row.last_display_number;
}
